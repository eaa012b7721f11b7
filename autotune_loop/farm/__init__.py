"""A farm: many hosts, devices and users, on a Dask cluster."""
