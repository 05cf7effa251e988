//! preemption
