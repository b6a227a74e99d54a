"""Two Flower apps that do the same work, plain federated SGD and this package's; copied together where they run."""
