"""What people look at: tables, pictures, notebooks, invitations."""
