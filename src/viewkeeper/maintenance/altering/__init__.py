"""Views become what other definitions say: in place, or recreated beside the old ones."""
