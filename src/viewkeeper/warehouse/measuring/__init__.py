"""What keeping views fresh has cost, beside what computing them again would cost."""
