"""Rigid and affine alignment on the datum-space cost."""
