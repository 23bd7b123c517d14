"""Views that are plans of operators: any query, over tables of sources and over views."""
