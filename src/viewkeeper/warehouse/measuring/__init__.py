"""What keeping views fresh has cost, beside what computing them anew would cost."""
