/* What libmd's configure would write. sha2.c needs nothing of it. */
