//! pods_together
