# The header of a kernel as that of another function of the same signature: HEADER, MADE, KERNEL, FUNCTION.
file(READ "${HEADER}" text)
string(REPLACE "${KERNEL}" "${FUNCTION}" text "${text}")
file(WRITE "${MADE}" "${text}")
