//===- Passes.td - from dist to commands on buffers at offsets -----------===//
#ifndef DS_PASSES_PLAN_TD
#define DS_PASSES_PLAN_TD

include "compiler/passes/base/PassBase.td"

defvar DeviceOption = Option<"device", "device", "::ds::kernels::Device", "::ds::kernels::Device::Cpu", "what kernels run on",
                             [{::llvm::cl::values(clEnumValN(::ds::kernels::Device::Cpu, "cpu", ""),
                                                  clEnumValN(::ds::kernels::Device::Cuda, "cuda", ""))}]>;

def SelectKernels : DsPass<"ds-select-kernels", ["::ds::dist::DistDialect", "::ds::train::TrainDialect"]> {
  let summary = "every op of a fragment is a call of a kernel";
  let description = [{
    Still on tensors: `dist.kernel` has the kernel's operands in its order and the bytes of its workspace
    (kernels/Kernels.inc). What moves or names tensors stays. Constants that no op reads any more go.

    ```mlir
    %y = train.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    train.accumulate %y into @g : tensor<4xf32>
    // becomes
    %y = dist.kernel "elementwise" {...}(%x) access [1, 2] as [tensor<4xf32>, tensor<4xf32>] : ...
    dist.kernel "elementwise" {...}(%y) access [1, 1, 2] as ... of [@g, unit, @g] : ...           // g = g + y
    ```
  }];
  let options = [
    DeviceOption, Option<"tf32", "tf32", "bool", "false", "on CUDA, float32 factors of products may be rounded to TF32">,
    Option<"threads", "threads", "int64_t", "1", "compute workers that workspaces are cut for">,
    Option<"workspaceBytesPerThread", "workspace-bytes-per-thread", "int64_t", "0",
           "most bytes of a workspace for each worker; 0: no kernel that has one may be used">];
}

def AllocateBuffers : DsPass<"ds-allocate-buffers", ["::ds::plan::PlanDialect", "::ds::train::TrainDialect"]> {
  let summary = "fragments to routines: one buffer a value, stores are copies";
  let description = [{
    Roles, programs and fragments become those of plan. A kernel's result gets a buffer of its own of scope call; reshapes,
    views, constants, loads and reads are views of a buffer; stores and packs copy, and so does a read that outlives its
    variable. All commands are on the compute queue, in the order of the fragment. Right as it is, if slow and large.

    ```mlir
    dist.fragment @forward phase forward stage 0 {
      %x = dist.load @x : tensor<4xf32>
      %y = dist.kernel "softmax" {axis = 0 : i64}(%x) access [1, 2] as [tensor<4xf32>, tensor<4xf32>] : (tensor<4xf32>) -> tensor<4xf32>
      dist.store %y as @h : tensor<4xf32>
    }
    // becomes
    ...
    %y = plan.buffer "softmax" in @device bytes 16 scope call category activations slots 1
    %h = plan.buffer "h" in @device bytes 16 scope slot category activations slots 1
    plan.routine @forward phase forward stage 0 {
      plan.kernel "softmax" {axis = 0 : i64}(%x, %y) ... access [1, 2] at [0, 0] on @compute
      plan.kernel "elementwise" {...}(%y, %h) ... access [1, 2] at [0, 0] on @compute             // a copy
    }
    ```
  }];
  let options = [DeviceOption];
}

def ElideCopies : DsPass<"ds-elide-copies"> {
  let summary = "who computes a value writes it where it is wanted";
  let description = [{
    Coalesces the source of a copy with its target, where no other use of either stands in the way. Must precede
    `ds-order-queues`, which orders what buffers are used for in the end. Switch off to bisect.

    ```mlir
    plan.kernel "softmax" {} (%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {program = array<i64: 1, 7, 0, -1, -1>} (%y, %h) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    // becomes
    plan.kernel "softmax" {}(%x, %h) ... access [1, 2] at [0, 0] on @compute
    ```
  }];
}

def ReuseDyingOperands : DsPass<"ds-reuse-dying-operands"> {
  let summary = "write a result over an operand that is read for the last time";
  let description = [{
    For kernels that may ("over" in kernels/Kernels.inc): elementwise ones, sums of residuals among them, softmax, norms, gradients
    of norms and of the cross entropy, which is often the largest tensor of a step. The operand may be a value that an earlier routine
    stored, if none reads it later. Where micro-batches overlap, a role takes the smaller arena of two: all this, or the
    gradient of the cross entropy alone. Must precede `ds-order-queues`. Switch off to bisect.

    ```mlir
    plan.kernel "elementwise" #add (%x, %y, %z) : [tensor<4xf32>, tensor<4xf32>, tensor<4xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
    plan.kernel "transpose" #same (%z, %w) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "transpose" #same (%x, %w) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    // becomes
    plan.kernel "elementwise" {...}(%x, %y, %y) ...                              // nothing reads y later, but x is read
    plan.kernel "transpose" {...}(%y, %w) ...
    plan.kernel "transpose" {...}(%x, %w) ...
    ```
  }];
  let options = [Option<"alignment", "alignment", "int64_t", "1", "bytes; a power of two">,
                 Option<"reorders", "reorders", "bool", "true", "ds-order-for-memory follows">,
                 Option<"patience", "patience", "double", "1", "of ds-order-queues">];
}

def OrderQueues : DsPass<"ds-order-queues"> {
  let summary = "commands on the queues that run beside compute, ordered by events";
  let description = [{
    Feeds go to the copy-in queue, messages to one of their channel's, collectives with a token to the collective queue. What
    of their order matters becomes events: by the bytes that commands touch within a routine, by the slots of values
    between routines, which this pass counts. An input is fed one micro-batch ahead and has two slots.

    ```mlir
    plan.kernel "softmax" {} (%x, %y) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    %t = plan.collective all_gather(%own, %all) : [tensor<4xf32>, tensor<16xf32>] access [1, 2] at [0, 0] over @data_ranks on @compute -> !plan.token
    plan.kernel "softmax" {} (%y, %z) : [tensor<4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    plan.await %t
    plan.kernel "reduce_sum" {} (%all, %x) : [tensor<4x4xf32>, tensor<4xf32>] access [1, 2] at [0, 0] on @compute
    // becomes
    plan.kernel "softmax" {}(%x, %y) ... on @compute signal [@ready_0]
    plan.collective all_gather(%own, %all) ... on @collective wait [@ready_0] [0] signal [@done_1]
    plan.kernel "softmax" {}(%y, %z) ... on @compute
    plan.kernel "reduce_sum" {}(%all, %x) ... on @compute wait [@done_1] [0]
    ```

    Compute waits for a copy out of device memory, whose bytes it then has again, when the cost model says that it has ended.
    Where the module does not say how fast links are (`dist.links`), it waits for it when the next copy but one begins. Outside of
    the update the same holds of kernels on the host and of copies to files, which hold no device memory: compute waits for them when
    `patience` times as long has passed. A step may copy to the device at its beginning, in a call of the last micro-batch. Who uses that first waits for
    it, in whatever routine. So it is with what the backward reads from files for the update alone. A step may call several such routines, between layers that
    all micro-batches go through (accumulate-by-layer). Then so it is with all that these issue, host kernels and copies to files included.
    Compute waits for what is left two of them later, and at the end of the update.
  }];
  let options = [
    Option<"patience", "patience", "double", "1", "compute waits for the host and for files as if they were so many times slower">,
  ];
}

def AssignOffsets : DsPass<"ds-assign-offsets"> {
  let summary = "give every buffer its place in the arena";
  let description = [{
    ```mlir
    plan.role @main ranks [0, 0] {
      plan.arena @device space device
      plan.queue @compute kind compute
      %a = plan.buffer "a" in @device bytes 256 scope call category activations slots 1
      %b = plan.buffer "b" in @device bytes 128 scope call category activations slots 1
      %c = plan.buffer "c" in @device bytes 256 scope call category activations slots 1
      plan.routine @forward phase forward stage 0 {
        plan.fill(%a) : [tensor<64xf32>] access [2] at [0] on @compute
        plan.kernel "reduce_sum" {} (%a, %b) : [tensor<64xf32>, tensor<32xf32>] access [1, 2] at [0, 0] on @compute
        plan.kernel "gather" {} (%b, %c) : [tensor<32xf32>, tensor<64xf32>] access [1, 2] at [0, 0] on @compute
      }
    // becomes with alignment=64
    plan.role @main ranks [0, 0] {
      plan.arena @device space device bytes 384 peak 384
      plan.queue @compute kind compute
      %a = plan.buffer "a" in @device bytes 256 ... at 0 lives ...
      %b = plan.buffer "b" in @device bytes 128 ... at 256 lives ...
      %c = plan.buffer "c" in @device bytes 256 ... at 0 lives ...        // a is dead when c is written
    ```
    Liveness in queue order on one time axis per program; programs never run at once. Largest first, first fit. Sets
    offsets, lives, and the arenas' sizes and peaks; the result is checked by OffsetProblem::verify. Where micro-batches
    overlap it also sets how many slots values and large scratch have (of scope slot then), each with an offset of its own.
  }];
  let options = [Option<"alignment", "alignment", "int64_t", "1", "bytes; a power of two">];
}

def OrderForMemory : DsPass<"ds-order-for-memory"> {
  let summary = "run commands in an order in which fewer bytes live at once";
  let description = [{
    ```mlir
    plan.kernel "first" {} (%big) : [tensor<256xf32>] access [2] at [0] on @compute
    plan.kernel "second" {} (%other) : [tensor<128xf32>] access [2] at [0] on @compute
    plan.kernel "reader" {} (%big, %sum) : [tensor<256xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "last" {} (%other, %sum) : [tensor<128xf32>, tensor<16xf32>] access [1, 1] at [0, 0] on @compute
    // becomes with alignment=64
    plan.kernel "first" {}(%big) ...
    plan.kernel "reader" {}(%big, %sum) ...                // %big is free
    plan.kernel "second" {}(%other) ...                    // may lie where %big lay
    plan.kernel "last" {}(%other, %sum) ...
    ```
    Within each routine. Commands that touch the same bytes, one of them writing, keep their order, so no bit changes.
    Collectives keep theirs among each other. Nothing passes a command that waits for an event or signals one, so what
    runs beside compute begins and ends where it did. Offsets are assigned again; a role keeps its order where its arena
    would not be smaller.
  }];
  let options = [Option<"alignment", "alignment", "int64_t", "1", "bytes; a power of two">];
}

def ChooseCapturedPrograms : DsPass<"ds-choose-captured-programs"> {
  let summary = "say which programs a device may record once and launch again";
  let description = [{
    ```mlir
    plan.program "step" {
      plan.call @forward microbatch 0
      plan.call @forward microbatch 1
    }
    plan.program "evaluate" {
      plan.call @forward microbatch 0
    }
    // becomes
    plan.program "step" captured {
      plan.call @forward microbatch 0
      plan.call @forward microbatch 1
    }
    plan.program "evaluate" {
      plan.call @forward microbatch 0
    }
    ```
    For devices that record what a run enqueues and launch the record as one (a CUDA graph). `step` becomes `captured`, if every
    arena that it uses is the device's or the host's and no role's run has more than `commands` commands. For a record costs the
    device memory of its reserve for each of them, and it is launched whole. Roles decide alike, for all ranks must launch a
    collective in the same way. A mark that a user wrote stays, and is refused where it cannot be. Switch off to bisect.
  }];
  let options = [Option<"commands", "commands", "int64_t", "65536", "most commands of a run that is recorded">];
}

def CompileElementwise : DsPass<"ds-compile-elementwise"> {
  let summary = "compile the programs of elementwise kernels for a GPU";
  let description = [{
    ```mlir
    plan.kernel "elementwise" {constants = array<f64>, program = array<i64: 10, 7, 0, 0, -1>, results = array<i64: 1>} (%a, %b) :
        [tensor<64xf32>, tensor<64xf32>] access [1, 2] at [0, 0] on @compute
    // becomes with alignment=256
    plan.code @elementwise_... blocks 1 threads 256 ".version 7.0...
    ...
    plan.kernel "elementwise" code @elementwise_... {...}(%a, %b) ...
    ```
    A code is for the shapes, broadcasts, constants and alignments of a call, which offsets of buffers must be there for, and is
    shared by calls in which these are equal; its name is a hash of them. Programs with other types than float32, 16-bit floats and bool, and
    those that keep more values than a thread has registers, stay the interpreter's, as do kernels on queues of the host. Results
    have the interpreter's bits but for those of exp, log, tanh and the like, which are some units of the last place
    off. Switch off to bisect.
  }];
  let options = [Option<"isa", "isa", "std::string", "\"sm_80\"", "compute capability that the plan's machine has at least">,
                 Option<"alignment", "alignment", "int64_t", "1", "of the arenas, bytes; a power of two">];
}

def VerifyPlanForm : DsPass<"ds-verify-plan-form"> {
  let summary = "check that nothing is left to decide";
  let description = [{
    Every buffer has an offset inside its arena and is written before it is read; every feed names a `plan.input`; no op of another
    dialect is left outside `@reference`.
  }];
}

#endif // DS_PASSES_PLAN_TD
