"""The convergence theory held against measurements: ``python -m anechoic.studies.theory``."""
