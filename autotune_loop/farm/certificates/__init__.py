"""Who is who in a farm: the authority, the certificates that it makes and revokes, and whom TLS lets in."""
