"""One job, written in several ways by people who had never heard of this package."""
