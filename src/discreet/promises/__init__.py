"""What is promised, exactly and in words."""
