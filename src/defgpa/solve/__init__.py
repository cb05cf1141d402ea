"""From bases to a reference: elimination of the warps, the spectrum, the proportions, the side."""
