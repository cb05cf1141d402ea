"""The closed form: ridge regressions, the cost they leave, its cheapest axes."""
