"""Private federated convex optimisation for when nobody is trusted and not everyone shows up."""
