"""A schedule over 10 steps, on two processes: each step of the training steps it once for each of them."""
import torch


def rate_after(steps, processes):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=10)
    for _ in range(steps):
        optimizer.step()
        for _ in range(processes):
            schedule.step()
    return schedule.get_last_lr()[0]


print(f"wrong: learning rate after 5 of 10 steps {rate_after(5, 2):.2f}")
print(f"right: learning rate after 5 of 10 steps {rate_after(5, 1):.2f}")
