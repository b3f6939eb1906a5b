"""Rank 1 has said all it has to say after three tokens and leaves; rank 0 enters the next all-gather and waits."""
import threading


def gathers(lengths):
    meet, done = threading.Barrier(2), []

    def rank(length):
        try:
            for token in range(length):
                meet.wait(timeout=0.5)  # all-gather of the parameters for the next token
                done.append(token)
        except threading.BrokenBarrierError:
            pass  # on GPUs: forever

    ranks = [threading.Thread(target=rank, args=(length,)) for length in lengths]
    for thread in ranks:
        thread.start()
    for thread in ranks:
        thread.join()
    return len(done) // 2


print(f"wrong: tokens that rank 0 finishes of 5: {gathers([5, 3])}")
print(f"right: tokens that rank 0 finishes of 5: {gathers([5, 5])}")
