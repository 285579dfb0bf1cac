//! Evidence
