"""What real machines and a real server say to each other and write down, whatever carries the messages."""
