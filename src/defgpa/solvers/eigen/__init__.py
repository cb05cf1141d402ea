"""The bottom eigenvectors of whatever multiplies."""
