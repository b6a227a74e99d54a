"""The federation over Flower: machine app, server app, durable store, local launcher."""
