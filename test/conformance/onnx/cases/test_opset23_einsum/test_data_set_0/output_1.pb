B
Einsum_1_0J¸ ?`ØBÀôÑÁ