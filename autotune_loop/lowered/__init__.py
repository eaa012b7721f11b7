"""What the loop nest of a lowered schedule says about its time, as numbers."""
