//===- Passes.td - what leaves device memory until it is needed again ------===//
#ifndef DS_PASSES_OFFLOAD_TD
#define DS_PASSES_OFFLOAD_TD

include "compiler/passes/base/PassBase.td"

def AdvanceUpdates : DsPass<"ds-advance-updates", ["::ds::plan::PlanDialect", "::ds::train::TrainDialect"]> {
  let summary = "the host updates while the backward goes on";
  let description = [{
    ```mlir
    module attributes {dist.links = {"device-host" = array<f64: 1.0e9, 0.0>}} {
      plan.role @r ranks [0, 0] {
        plan.arena @device space device
        plan.queue @compute kind compute
        %w = plan.buffer "w" in @device bytes 4096 scope plan category weights slots 1 of @w
        %m = plan.buffer "m" in @device bytes 4096 scope plan category optimizer slots 1 of @m
        %g = plan.buffer "g" in @device bytes 4096 scope step category gradients slots 1
        %x = plan.buffer "x" in @device bytes 400000 scope call category activations slots 1
        plan.routine @backward phase backward stage 0 {
          plan.kernel "neg" {}(%x, %g) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
          plan.kernel "exp" {}(%x, %x) : [tensor<100000xf32>, tensor<100000xf32>] access [1, 2] at [0, 0] on @compute
        }
        plan.routine @update phase update {
          plan.kernel "sgd" {}(%w, %g, %m) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
        }
        plan.program "step" {
          plan.call @backward microbatch 0
          plan.call @update microbatch 0
        }
      }
    }
    // becomes
    module attributes {dist.links = {"device-host" = array<f64: 1.000000e+09, 0.000000e+00>}} {
      plan.role @r ranks [0, 0] {
        plan.arena @device space device
        plan.queue @compute kind compute
        %w = plan.buffer "w" in @device bytes 4096 scope plan category weights slots 1 of @w
        %m = plan.buffer "m" in @device bytes 4096 scope plan category optimizer slots 1 of @m
        %g = plan.buffer "g" in @device bytes 4096 scope step category gradients slots 1
        %x = plan.buffer "x" in @device bytes 400000 scope call category activations slots 1
        plan.routine @backward phase backward stage 0 {
          plan.kernel "neg" {}(%x, %g) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
          plan.kernel "sgd" {}(%w, %g, %m) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
          plan.kernel "exp" {}(%x, %x) : [tensor<100000xf32>, tensor<100000xf32>] access [1, 2] at [0, 0] on @compute
        }
        plan.routine @update phase update {
        }
        plan.program "step" {
          plan.call @backward microbatch 0
          plan.call @update microbatch 0
        }
      }
    }
    ```
    An update that `ds-run-on-host` will run on the host leaves the routine of the update for the backward, if that is
    called once in a step and just before it. The update may need nothing of the step but its own gradient: no norm of all
    gradients, by which they are clipped or a step is left out. It stands behind the last command that touches the same bytes.
    Where operands have to come to the host, two updates are under way at once, three with a file.

    Where several micro-batches go through each layer before the next one (accumulate-by-layer), it stands in a routine that the
    step calls behind the last layer that touches the same bytes, whatever the links.

    With `speculates`, an update that waits for the norm of all gradients alone, by which they are clipped, goes too: it is made with
    the factor 1. Behind the step stands a tail that makes it again, from what is kept of its parameter, with the factor that
    there is; it is called unless that is 1. State has to lie in files then, which keep the old beside the new (`ds-keep-old-state`).

    What would not be back by the end of the backward stays, by the cost model and the links of the module (`dist.links`). Where
    it names none, nothing moves.
  }];
  let options = [
    Option<"space", "space", "std::string", "\"host\"", "where state will lie: host or nvme">,
    Option<"leastBytes", "least-bytes", "int64_t", "4096", "updates of smaller state stay">,
    Option<"speculates", "speculates", "bool", "false", "updates do not wait for the norm of gradients">,
  ];
}

def KeepOptimizerState : DsPass<"ds-keep-optimizer-state", ["::ds::plan::PlanDialect"]> {
  let summary = "a share of the optimizer state stays in device memory";
  let description = [{
    ```mlir
    plan.role @r ranks [0, 0] {
      plan.arena @device space device
      plan.queue @compute kind compute
      %v = plan.buffer "v" in @device bytes 4096 scope plan category weights slots 1 of @v
      %w = plan.buffer "w" in @device bytes 4096 scope plan category weights slots 1 of @w
      %g = plan.buffer "g" in @device bytes 4096 scope step category gradients slots 1
      %mv = plan.buffer "mv" in @device bytes 4096 scope plan category optimizer slots 1 of @mv
      %mw = plan.buffer "mw" in @device bytes 4096 scope plan category optimizer slots 1 of @mw
      plan.routine @forward phase forward stage 0 {
        plan.kernel "neg" {}(%w, %g) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
        plan.kernel "neg" {}(%v, %g) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
      }
      plan.routine @update phase update {
        plan.kernel "sgd" {}(%v, %g, %mv) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
        plan.kernel "sgd" {}(%w, %g, %mw) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
      }
      plan.program "step" {
        plan.call @forward microbatch 0
        plan.call @update microbatch 0
      }
    }
    // becomes with share=0.5
    plan.role @r ranks [0, 0] {
      plan.arena @device space device
      plan.queue @compute kind compute
      %v = plan.buffer "v" in @device bytes 4096 scope plan category weights slots 1 of @v
      %w = plan.buffer "w" in @device bytes 4096 scope plan category weights slots 1 of @w
      %g = plan.buffer "g" in @device bytes 4096 scope step category gradients slots 1
      %mv = plan.buffer "mv" in @device bytes 4096 scope plan category optimizer slots 1 of @mv
      %mw = plan.buffer "mw" in @device bytes 4096 scope plan category optimizer slots 1 of @mw stays
      plan.routine @forward phase forward stage 0 {
        plan.kernel "neg" {}(%w, %g) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
        plan.kernel "neg" {}(%v, %g) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
      }
      plan.routine @update phase update {
        plan.kernel "sgd" {}(%v, %g, %mv) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
        plan.kernel "sgd" {}(%w, %g, %mw) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
      }
      plan.program "step" {
        plan.call @forward microbatch 0
        plan.call @update microbatch 0
      }
    }
    ```
    Of the optimizer state that `ds-offload-optimizer` would move, at most `share` of the bytes of a role stays, and with it its
    updates, on the device. Whole parameters stay, in the order in which a step first uses them, as far as they fit: the first layers'
    parameters have no forward to come beside, and their gradients are the last of the backward. What is marked is left alone by
    all passes that move optimizer state, gradients or parameters for the host's updates.

    Cf. Twin-Flow of DeepSpeed (ZeRO-Offload++), key `offload_optimizer.ratio`.
  }];
  let options = [
    Option<"share", "share", "double", "0", "of the bytes that stay at most, from 0 to 1">,
    Option<"leastBytes", "least-bytes", "int64_t", "4096", "smaller state stays anyway">,
  ];
}

def KeepOldState : DsPass<"ds-keep-old-state", ["::ds::plan::PlanDialect"]> {
  let summary = "files keep old state beside new";
  let description = [{
    ```mlir
    plan.role @r ranks [0, 0] {
      plan.arena @host space host
      plan.arena @nvme space nvme
      plan.queue @compute kind compute
      %m = plan.buffer "m" in @nvme bytes 4096 scope plan category optimizer slots 1 of @m
      %f = plan.buffer "f" in @host bytes 8 scope step category activations slots 1
      %new = plan.buffer "m" in @host bytes 4096 scope step category communication slots 1
      plan.routine @update phase update {
        plan.copy(%new, %m) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
      }
      plan.routine @redo phase update {
        plan.copy(%new, %m) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
      }
      plan.program "step" {
        plan.call @update microbatch 0
        plan.tail unless_one %f : tensor<f64>
        plan.call @redo microbatch 0
      }
    }
    // becomes
    plan.role @r ranks [0, 0] {
      plan.arena @host space host
      plan.arena @nvme space nvme
      plan.queue @compute kind compute
      %m = plan.buffer "m" in @nvme bytes 4096 scope plan category optimizer slots 1 of @m
      %next = plan.buffer "m" in @nvme bytes 4096 scope plan category optimizer slots 1 of @m next
      %f = plan.buffer "f" in @host bytes 8 scope step category activations slots 1
      %new = plan.buffer "m" in @host bytes 4096 scope step category communication slots 1
      plan.routine @update phase update {
        plan.copy(%new, %next) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
      }
      plan.routine @redo phase update {
        plan.copy(%new, %next) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
      }
      plan.program "step" {
        plan.call @update microbatch 0
        plan.tail unless_one %f : tensor<f64>
        plan.call @redo microbatch 0
      }
    }
    ```
    Optimizer state in space nvme that the tail of a step writes has two places. A step reads one and writes the other, and the next
    step finds there what this one wrote. So the tail can update again from what there was before the step.
  }];
}

def OffloadActivations : DsPass<"ds-offload-activations", ["::ds::dist::DistDialect"]> {
  let summary = "keep what the backward reads in host memory";
  let description = [{
    ```mlir
    dist.value @v : tensor<1024xf32>
    dist.fragment @forward phase forward stage 0 {
      %x = train.constant dense<1.0> : tensor<1024xf32>
      dist.store %x as @v : tensor<1024xf32>
    }
    dist.fragment @backward phase backward stage 0 {
      %back = dist.load @v : tensor<1024xf32>
      %y = train.exp %back : (tensor<1024xf32>) -> tensor<1024xf32>
    }
    // becomes
    dist.value @v : tensor<1024xf32> in host
    dist.fragment @forward phase forward stage 0 {
      %x = train.constant dense<1.000000e+00> : tensor<1024xf32>
      %there = dist.transfer %x from device to host : tensor<1024xf32>
      dist.store %there as @v : tensor<1024xf32>
    }
    dist.fragment @backward phase backward stage 0 {
      %held = dist.load @v : tensor<1024xf32>
      %back = dist.transfer %held from host to device : tensor<1024xf32>
      %y = train.exp %back : (tensor<1024xf32>) -> tensor<1024xf32>
    }
    ```
    What forward fragments store for backward ones, and only those, passes through host memory if it has at least `least-bytes`.
    It leaves when it is computed, and comes back when the tensor before it is first used: while one is used, the next is on its
    way. With `rules`, REGEX=device, REGEX=host or REGEX=nvme, the first decides that the name of the op matches which computes
    the tensor; what no rule matches stays, but for `values` by their own names. A last rule `.*` is open to fewer: the module then says
    what left by it (`dist.left`), what is away longest first, and `values` takes names of these instead.

    Where the module says how fast links are (`dist.links`) and the backward of a micro-batch follows its forward, what cannot be
    away by the end of the forward stays. What takes long comes back earlier (`compiler/passes/offload/ReturnTimes.h`).

    Cf. cpu_checkpointing of DeepSpeed and torch.autograd.graph.save_on_cpu, whose transfers are found at run time.
  }];
  let options = [
    Option<"leastBytes", "least-bytes", "int64_t", "4096", "smaller tensors stay">,
    ListOption<"rules", "rules", "std::string", "REGEX=device, REGEX=host or REGEX=nvme, in order; none, and no values: all to the host">,
    ListOption<"values", "values", "std::string", "that leave to the host though no rule matches, by the names of dist.values">,
  ];
}

def OffloadGradients : DsPass<"ds-offload-gradients", ["::ds::plan::PlanDialect"]> {
  let summary = "gradients leave for where the host updates";
  let description = [{
    ```mlir
    plan.role @r ranks [0, 0] {
      plan.arena @device space device
      plan.queue @compute kind compute
      %w = plan.buffer "w" in @device bytes 4096 scope plan category weights slots 1 of @w
      %x = plan.buffer "x" in @device bytes 4096 scope call category activations slots 1
      %g = plan.buffer "g" in @device bytes 4096 scope step category gradients slots 1
      %m = plan.buffer "m" in @device bytes 4096 scope plan category optimizer slots 1 of @m
      plan.routine @backward phase backward stage 0 {
        plan.kernel "neg" {}(%x, %g) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
      }
      plan.routine @update phase update {
        plan.kernel "sgd" {}(%w, %g, %m) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
      }
    }
    // becomes
    plan.role @r ranks [0, 0] {
      plan.arena @device space device
      plan.arena @host space host
      plan.queue @compute kind compute
      %w = plan.buffer "w" in @device bytes 4096 scope plan category weights slots 1 of @w
      %x = plan.buffer "x" in @device bytes 4096 scope call category activations slots 1
      %g = plan.buffer "g" in @host bytes 4096 scope step category gradients slots 1
      %m = plan.buffer "m" in @device bytes 4096 scope plan category optimizer slots 1 of @m
      %near = plan.buffer "g" in @device bytes 4096 scope call category communication slots 1
      plan.routine @backward phase backward stage 0 {
        plan.kernel "neg" {}(%x, %near) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
        plan.copy(%near, %g) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
      }
      plan.routine @update phase update {
        plan.kernel "sgd" {}(%w, %g, %m) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
      }
    }
    ```
    A gradient of at least `least-bytes` whose update `ds-run-on-host` will run on the host, since it has state of as many
    bytes, lies in host memory or in space nvme. What computes it writes a buffer in device memory, from where it leaves at once.
    Kernels of the update, and additions to sums of micro-batches, are left to `ds-run-on-host`, which runs them where the
    gradient lies; a reduction over the ranks has the owner's slice brought, adds to it, and takes it back. The gradient of a
    lookup (gather_grad), where it is larger than the rows that it is made of, and the sums that it is a part of are left to it,
    too. Where all micro-batches go through a layer before the next one (accumulate-by-layer), the sum of them is made in device
    memory, and leaves once, behind the layer. What is updated in the backward lies in host memory, also with space nvme. Cf. ZeRO-Offload.
  }];
  let options = [
    Option<"space", "space", "std::string", "\"host\"", "where gradients lie: host or nvme">,
    Option<"leastBytes", "least-bytes", "int64_t", "4096", "smaller gradients stay">,
    Option<"hostSums", "host-sums", "bool", "true", "what is made of few rows leaves as these, and the host makes it">,
  ];
}

def OffloadOptimizer : DsPass<"ds-offload-optimizer", ["::ds::plan::PlanDialect"]> {
  let summary = "keep moments in host memory";
  let description = [{
    ```mlir
    plan.role @r ranks [0, 0] {
      plan.arena @device space device
      plan.queue @compute kind compute
      %w = plan.buffer "w" in @device bytes 4096 scope plan category weights slots 1 of @w
      %g = plan.buffer "g" in @device bytes 4096 scope plan category gradients slots 1 of @g
      %m = plan.buffer "m" in @device bytes 4096 scope plan category optimizer slots 1 of @m
      plan.routine @update phase update {
        plan.kernel "sgd" {}(%w, %g, %m) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
      }
    }
    // becomes
    plan.role @r ranks [0, 0] {
      plan.arena @device space device
      plan.arena @host space host
      plan.queue @compute kind compute
      %w = plan.buffer "w" in @device bytes 4096 scope plan category weights slots 1 of @w
      %g = plan.buffer "g" in @device bytes 4096 scope plan category gradients slots 1 of @g
      %m = plan.buffer "m" in @host bytes 4096 scope plan category optimizer slots 1 of @m
      plan.routine @update phase update {
        plan.kernel "sgd" {}(%w, %g, %m) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
      }
    }
    ```
    Optimizer state of at least `least-bytes` that only kernels name lies in host memory, or in space nvme. `ds-run-on-host` moves
    the updates that name it. Cf. offload_optimizer of DeepSpeed (ZeRO-Offload, ZeRO-Infinity).
  }];
  let options = [
    Option<"space", "space", "std::string", "\"host\"", "where state lies: host or nvme">,
    Option<"pending", "pending", "std::string", "\"host\"", "where gradients lie that the next step's updates read: host or nvme">,
    Option<"leastBytes", "least-bytes", "int64_t", "4096", "smaller state stays">,
  ];
}

def ElidePendingCopies : DsPass<"ds-elide-pending-copies", ["::ds::plan::PlanDialect"]> {
  let summary = "a gradient leaves for where the next step's update reads it";
  let description = [{
    ```mlir
    plan.role @r ranks [0, 0] {
      plan.arena @device space device
      plan.arena @host space host
      plan.queue @compute kind compute
      %w = plan.buffer "w" in @host bytes 4096 scope plan category weights slots 1 of @w
      %p = plan.buffer "p" in @host bytes 4096 scope plan category optimizer slots 1 of @p
      %near = plan.buffer "g" in @device bytes 4096 scope call category communication slots 1
      %g = plan.buffer "g" in @host bytes 4096 scope step category gradients slots 1
      plan.routine @forward phase forward stage 0 {
        plan.kernel "sgd" {}(%w, %p) : [tensor<1024xf32>, tensor<1024xf32>] access [3, 1] at [0, 0] on @compute
      }
      plan.routine @backward phase backward stage 0 {
        plan.copy(%near, %g) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
      }
      plan.routine @update phase update {
        plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 1, 7, 0, -1, -1>, results = array<i64: 1>}(%g, %p) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
      }
      plan.program "step" {
        plan.call @forward microbatch 0
        plan.call @backward microbatch 0
        plan.call @update microbatch 0
      }
    }
    // becomes
    ...
      plan.routine @backward phase backward stage 0 {
        plan.copy(%near, %p) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
      }
      plan.routine @update phase update {
      }
    ...
    ```
    Only where all that reads the old pending gradient stands before (`ds-advance-updates`).
  }];
}

def PeelBackward : DsPass<"ds-peel-backward", ["::ds::plan::PlanDialect"]> {
  let summary = "the last micro-batch has a backward of its own";
  let description = [{
    ```mlir
    plan.role @r ranks [0, 0] {
      plan.arena @device space device
      plan.queue @compute kind compute
      %g = plan.buffer "g" in @device bytes 4096 scope step category gradients slots 1
      %x = plan.buffer "x" in @device bytes 4096 scope call category activations slots 1
      plan.routine @backward phase backward stage 0 {
        plan.kernel "neg" {}(%x, %g) : [tensor<1024xf32>, tensor<1024xf32>] access [2, 3] at [0, 0] on @compute
      }
      plan.routine @update phase update {
      }
      plan.program "step" {
        plan.call @backward microbatch 0
        plan.call @backward microbatch 1
        plan.call @update microbatch 1
      }
    }
    // becomes
    plan.role @r ranks [0, 0] {
      plan.arena @device space device
      plan.queue @compute kind compute
      %g = plan.buffer "g" in @device bytes 4096 scope step category gradients slots 1
      %x = plan.buffer "x" in @device bytes 4096 scope call category activations slots 1
      plan.routine @backward phase backward stage 0 {
        plan.kernel "neg" {}(%x, %g) : [tensor<1024xf32>, tensor<1024xf32>] access [2, 3] at [0, 0] on @compute
      }
      %own = plan.buffer "x" in @device bytes 4096 scope call category activations slots 1
      plan.routine @backward_last phase backward stage 0 {
        plan.kernel "neg" {}(%own, %g) : [tensor<1024xf32>, tensor<1024xf32>] access [2, 3] at [0, 0] on @compute
      }
      plan.routine @update phase update {
      }
      plan.program "step" {
        plan.call @backward microbatch 0
        plan.call @backward_last microbatch 1
        plan.call @update microbatch 1
      }
    }
    ```
    The last call of a step's backward is of a routine by itself: beside that one, sums of gradients are complete, so the host may
    update. Not so where micro-batches go through each layer before the next one, nor where the backward sends or receives.
  }];
}

def ReadAhead : DsPass<"ds-read-ahead", ["::ds::plan::PlanDialect"]> {
  let summary = "files are read before the backward ends";
  let description = [{
    ```mlir
    module attributes {dist.links = {"host-nvme" = array<f64: 1.0e8, 0.0>}} {
      plan.role @r ranks [0, 0] {
        plan.arena @device space device
        plan.arena @host space host
        plan.arena @nvme space nvme
        plan.queue @compute kind compute
        %m = plan.buffer "m" in @nvme bytes 4096 scope plan category optimizer slots 1 of @m
        %here = plan.buffer "m" in @host bytes 4096 scope call category communication slots 1
        %x = plan.buffer "x" in @device bytes 4000000 scope call category activations slots 1
        plan.routine @backward phase backward stage 0 {
          plan.kernel "exp" {}(%x, %x) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
          plan.kernel "neg" {}(%x, %x) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
        }
        plan.routine @update phase update {
          plan.copy(%m, %here) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
          plan.kernel "neg" {}(%here, %here) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
        }
        plan.program "step" {
          plan.call @backward microbatch 0
          plan.call @update microbatch 0
        }
      }
    }
    // becomes
    module attributes {dist.links = {"host-nvme" = array<f64: 1.000000e+08, 0.000000e+00>}} {
      plan.role @r ranks [0, 0] {
        plan.arena @device space device
        plan.arena @host space host
        plan.arena @nvme space nvme
        plan.queue @compute kind compute
        %m = plan.buffer "m" in @nvme bytes 4096 scope plan category optimizer slots 1 of @m
        %here = plan.buffer "m" in @host bytes 4096 scope step category communication slots 1
        %x = plan.buffer "x" in @device bytes 4000000 scope call category activations slots 1
        plan.routine @backward phase backward stage 0 {
          plan.kernel "exp" {}(%x, %x) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
          plan.copy(%m, %here) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
          plan.kernel "neg" {}(%x, %x) : [tensor<1000000xf32>, tensor<1000000xf32>] access [1, 2] at [0, 0] on @compute
        }
        plan.routine @update phase update {
          plan.kernel "neg" {}(%here, %here) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
        }
        plan.program "step" {
          plan.call @backward microbatch 0
          plan.call @update microbatch 0
        }
      }
    }
    ```
    What the update reads from files is read while the backward goes on. Reads follow one another, as late as the drive allows
    (`dist.links`): if it were half as fast, the last would end with the backward. At most `bytes` are read so, of the first updates. They lie in host memory until their updates. Where the backward is called for several
    micro-batches, they are read in front of its last call. Cf. pipeline_read of DeepSpeed's ZeRO-Infinity, which reads beside other
    updates alone.
  }];
  let options = [
    Option<"bytes", "bytes", "int64_t", "1073741824", "read so at most">,
  ];
}

def OffloadParameters : DsPass<"ds-offload-parameters", ["::ds::plan::PlanDialect"]> {
  let summary = "keep parameters in host memory until a command reads them";
  let description = [{
    ```mlir
    plan.role @r ranks [0, 0] {
      plan.arena @device space device
      plan.queue @compute kind compute
      %w = plan.buffer "w" in @device bytes 4096 scope plan category weights slots 1 of @w
      %x = plan.buffer "x" in @device bytes 4096 scope call category activations slots 1
      %y = plan.buffer "y" in @device bytes 4096 scope call category activations slots 1
      plan.routine @forward phase forward stage 0 {
        plan.kernel "mul" {}(%w, %x, %y) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
      }
    }
    // becomes
    plan.role @r ranks [0, 0] {
      plan.arena @device space device
      plan.arena @host space host
      plan.queue @compute kind compute
      %w = plan.buffer "w" in @host bytes 4096 scope plan category weights slots 1 of @w
      %x = plan.buffer "x" in @device bytes 4096 scope call category activations slots 1
      %y = plan.buffer "y" in @device bytes 4096 scope call category activations slots 1
      %near = plan.buffer "w" in @device bytes 4096 scope call category communication slots 1
      plan.routine @forward phase forward stage 0 {
        plan.copy(%w, %near) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
        plan.kernel "mul" {}(%near, %x, %y) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
      }
    }
    ```
    Parameters of at least `least-bytes` that only kernels and collectives name lie in host memory, or in space nvme, from where
    they pass through it. What a command reads comes while the parameter before it is used; what it writes goes back behind it.
    Where all micro-batches go through a layer before the next one (accumulate-by-layer), it comes once for them, beside the layer
    before. With `host-updates`, what reads and writes a parameter is left to `ds-run-on-host`. With `for-step` only parameters move
    whose updates the host makes. Each comes in front of its first use in a run of a program, and stays in device
    memory to the last one. So it goes one way in a step, beside the forward. A step may call the routine that uses it first
    several times. Then it comes at the start of the step, by layers at the start of the layer before. It comes in a routine of its own, whose call is of the
    last micro-batch, so that its events say at once that it is there for all. With `host-lookups`, what reads few rows of a parameter in host memory (gather) is
    left to `ds-run-on-host` likewise, with `for-step` in a routine that is called once; and so is what rounds a parameter: its result comes instead. Over a link whose speed the module names (`dist.links`), a
    parameter that takes longer comes earlier; from a file not before `read-ahead` bytes wait for their use. Cf. offload_param of DeepSpeed (ZeRO-Infinity), which needs ZeRO stage 3; this
    does not.
  }];
  let options = [
    Option<"space", "space", "std::string", "\"host\"", "where parameters lie: host or nvme">,
    Option<"leastBytes", "least-bytes", "int64_t", "4096", "smaller parameters stay">,
    Option<"readAhead", "read-ahead", "int64_t", "1073741824", "bytes from files that wait in host memory at most, or what one command reads">,
    Option<"hostUpdates", "host-updates", "bool", "false", "the host makes the updates">,
    Option<"hostLookups", "host-lookups", "bool", "true", "the host looks few rows up, and they alone come">,
    Option<"forStep", "for-step", "bool", "false", "what the host updates comes once a run of a program, and stays for it">,
  ];
}

def RunOnHost : DsPass<"ds-run-on-host", ["::ds::plan::PlanDialect"]> {
  let summary = "kernels run where what they use lies";
  let description = [{
    ```mlir
    plan.role @r ranks [0, 0] {
      plan.arena @device space device
      plan.arena @host space host
      plan.queue @compute kind compute
      %w = plan.buffer "w" in @device bytes 4096 scope plan category weights slots 1 of @w
      %g = plan.buffer "g" in @device bytes 4096 scope plan category gradients slots 1 of @g
      %m = plan.buffer "m" in @host bytes 4096 scope plan category optimizer slots 1 of @m
      plan.routine @update phase update {
        plan.kernel "sgd" {}(%w, %g, %m) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
      }
    }
    // becomes
    plan.role @r ranks [0, 0] {
      plan.arena @device space device
      plan.arena @host space host
      plan.queue @compute kind compute
      %w = plan.buffer "w" in @device bytes 4096 scope plan category weights slots 1 of @w
      %g = plan.buffer "g" in @device bytes 4096 scope plan category gradients slots 1 of @g
      %m = plan.buffer "m" in @host bytes 4096 scope plan category optimizer slots 1 of @m
      %there = plan.buffer "w" in @host bytes 4096 scope call category communication slots 1
      %sum = plan.buffer "g" in @host bytes 4096 scope call category communication slots 1
      plan.routine @update phase update {
        plan.copy(%w, %there) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
        plan.copy(%g, %sum) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
        plan.kernel "sgd" {}(%there, %sum, %m) : [tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
        plan.copy(%there, %w) : [tensor<1024xf32>, tensor<1024xf32>] access [1, 2] at [0, 0] on @compute
      }
    }
    ```
    A kernel that names a buffer in host memory or in space nvme runs on the host: updates of state that lies there, lookups of
    few rows, sums of gradients. What it reads of device memory, or of files, is copied to the host, and what it writes there is
    copied back; `ds-order-queues` puts it on a queue of the host's. Outside of the update what is read leaves as soon as it is
    written, and what an update takes beside while the one before it waits.
  }];
}

def SplitUpdates : DsPass<"ds-split-updates", ["::ds::plan::PlanDialect"]> {
  let summary = "large updates in pieces";
  let description = [{
    ```mlir
    plan.role @r ranks [0, 0] {
      plan.arena @device space device
      plan.queue @compute kind compute
      %w = plan.buffer "w" in @device bytes 4096 scope plan category weights slots 1 of @w
      %m = plan.buffer "m" in @device bytes 4096 scope plan category optimizer slots 1 of @m
      %g = plan.buffer "g" in @device bytes 4096 scope step category gradients slots 1
      plan.routine @update phase update {
        plan.kernel "sgd" {}(%w, %g, %m) : [tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
      }
    }
    // becomes with elements=600
    plan.role @r ranks [0, 0] {
      plan.arena @device space device
      plan.queue @compute kind compute
      %w = plan.buffer "w" in @device bytes 4096 scope plan category weights slots 1 of @w
      %m = plan.buffer "m" in @device bytes 4096 scope plan category optimizer slots 1 of @m
      %g = plan.buffer "g" in @device bytes 4096 scope step category gradients slots 1
      plan.routine @update phase update {
        plan.kernel "sgd" {}(%w, %g, %m) : [tensor<600xf32>, tensor<600xf32>, tensor<600xf32>] access [3, 1, 3] at [0, 0, 0] on @compute
        plan.kernel "sgd" {}(%w, %g, %m) : [tensor<424xf32>, tensor<424xf32>, tensor<424xf32>] access [3, 1, 3] at [2400, 2400, 2400] on @compute
      }
    }
    ```
    An update that `ds-run-on-host` will run on the host, and that is element by element (all but Lamb's), is cut into pieces.
    So of a large one less lies in host memory at once, and a piece is read from its file while others are computed and written.
    A piece has so many elements that copying it takes 16 times the latency of the drive (`dist.links`; 2^20 where that is unknown),
    and that a role has some 512 of them at most; a multiple of 2^16. `elements` may ask for less. With `parameters`, updates are cut
    that the device makes and whose parameters `ds-offload-parameters` will move: by the link between device and host, into some 64
    pieces at most. So no large parameter has to come before its update begins, or to leave behind the last.
    Cf. sub_group_size of DeepSpeed (ZeRO-Infinity).
  }];
  let options = [
    Option<"elements", "elements", "int64_t", "0", "most of a piece, whatever the drive; no default">,
    Option<"leastBytes", "least-bytes", "int64_t", "4096", "updates of smaller state, or parameters, stay">,
    Option<"parameters", "parameters", "bool", "false", "updates of parameters that lie elsewhere, not of state">,
  ];
}

#endif // DS_PASSES_OFFLOAD_TD
