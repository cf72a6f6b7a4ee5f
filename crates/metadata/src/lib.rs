//! Cluster image and delta, and the controller's decisions.
