"""Algorithm 1 of the paper: the reference covariance from rigidity."""
