//! Sub-models and configuration put together into a complete model.
