"""Softmax regression on MNIST between machines that trust nobody."""
