//! Trace-based load characterization: templates, plans and the control algorithm that turn operations into a sub-model (1998 paper).
