//! What reference data must give; skipped where it is not there.
