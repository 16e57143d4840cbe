"""The PyTorch contenders of `thinwire bench step`: compute only, DDP in fp32, its fp16 hook, PowerSGD of rank 1.

Started once per rank with torchrun's variables; answers lines "run CONTENDER STEPS" on standard input with one JSON
line each (the protocol is described in thinwire/cli/bench_workers.hpp). The model, its inputs and the Adam update are
those of bench/step/byte_transformer.hpp.
"""

import json
import os
import sys
import time

ANSWERS = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
os.dup2(2, 1)  # what libraries print must not be taken for an answer


def answer(**facts):
    print(json.dumps(facts), file=ANSWERS, flush=True)


try:
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    answer(unavailable=f"{sys.executable}: {error}")
    raise SystemExit(0) from None

WIDTH, LAYERS, HEADS, TOKENS, BATCH, VOCABULARY = 384, 6, 6, 64, 4, 256
PARAMETERS = 10_868_992
INPUTS = 16  # batches, used in turn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, tokens, 3, HEADS, width // HEADS)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.feed_forward(self.norm2(x))


class ByteTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Parameter(torch.randn(TOKENS, WIDTH) * 0.02)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.embedding(x) + self.position)))


class Contender:
    """One model with its optimizer and its way to average gradients."""

    def __init__(self, name):
        torch.manual_seed(0)
        model = ByteTransformer()
        count = sum(parameter.numel() for parameter in model.parameters())
        if count != PARAMETERS:
            raise RuntimeError(f"[bench step] parameters; got {count}, want {PARAMETERS}")
        self.optimizer = torch.optim.Adam(model.parameters(), 1e-3, foreach=True)
        self.net = distributed(model, name)

    def step(self, batch):
        logits = self.net(batch[:, :-1])
        loss = functional.cross_entropy(logits.reshape(-1, VOCABULARY), batch[:, 1:].reshape(-1))
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss


def distributed(model, name):
    if name == "torch-compute":
        return model
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    # PowerSGD does best with one bucket: it compresses whole matrices after the last gradient.
    power = name == "torch-powersgd1"
    net = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=100 if power else 25)
    if name == "torch-ddp-fp16":
        net.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif power:
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=3)
        net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    elif name != "torch-ddp":
        raise ValueError(f"[bench step] contender; got {name}")
    return net


def sent_bytes():
    interface = os.environ.get("THINWIRE_LINK_INTERFACE")
    if not interface:
        return None  # loopback, which all ranks share
    with open(f"/sys/class/net/{interface}/statistics/tx_bytes", encoding="ascii") as file:
        return int(file.read())


def run(contender, steps, inputs):
    times, loss = [], None
    dist.barrier()
    before = sent_bytes()
    for i in range(steps):
        dist.barrier()
        begin = time.perf_counter()
        loss = contender.step(inputs[i % len(inputs)])
        times.append(time.perf_counter() - begin)
    dist.barrier()
    sent = None if before is None else sent_bytes() - before
    answer(step_s=times, sent_bytes=sent, loss=loss.item(), stage="dense")


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    generator = torch.Generator().manual_seed(dist.get_rank())
    inputs = [torch.randint(0, VOCABULARY, (BATCH, TOKENS + 1), generator=generator) for _ in range(INPUTS)]
    contenders = {}
    answer(ready=True)
    for line in sys.stdin:
        _, name, steps = line.split()
        if name not in contenders:
            contenders[name] = Contender(name)
        run(contenders[name], int(steps), inputs)
    contenders.clear()
    dist.destroy_process_group()


main()
