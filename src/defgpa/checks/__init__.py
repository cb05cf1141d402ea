"""What to be told about shapes and alignments."""
