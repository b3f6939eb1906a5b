//===- Passes.td - from dist to commands on buffers at offsets -----------===//
#ifndef DS_PASSES_PLAN_TD
#define DS_PASSES_PLAN_TD

include "compiler/passes/base/PassBase.td"

def LowerToPlan : DsPass<"ds-lower-to-plan", ["::ds::plan::PlanDialect", "::ds::train::TrainDialect"]> {
  let summary = "fragments to routines of kernels on buffers";
  let description = [{
    ```mlir
    dist.fragment @forward phase forward stage 0 {
      %w = train.read @w : tensor<4xf32>
      %x = dist.load @x : tensor<4xf32>
      %0 = train.exp %x : (tensor<4xf32>) -> tensor<4xf32>
      %1 = train.mul %0, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      dist.store %1 as @h : tensor<4xf32>
    }
    // becomes
    ...
    %h = plan.buffer "h" in @device bytes 16 scope slot category activations slots 1
    %0 = plan.buffer "train.exp" in @device bytes 16 scope call category activations slots 1
    %w = plan.buffer "w" in @device bytes 16 scope plan category weights slots 1 of @w
    plan.routine @forward phase forward stage 0 {
      plan.kernel "elementwise" {...}(%x, %0) ... access [1, 2] at [0, 0] on @compute wait [@input_ready] [0]
      plan.kernel "elementwise" {...}(%0, %w, %h) ... access [1, 1, 2] at [0, 0, 0] on @compute signal [@input_done]
    }
    ```
    Values become buffers, ops become commands with the kernels and workspaces of kernels/KernelSignatures.h, and
    fragments become routines. A reshape is another view of its operand's buffer; what is kept or stored is written in
    place by its producer. Feeds run on the copy-in queue; compute waits for them by event, and they wait for the
    backward two micro-batches before, whose slot they reuse.
  }];
  let options = [
    Option<"device", "device", "::ds::kernels::Device", "::ds::kernels::Device::Cpu", "what kernels run on",
           [{::llvm::cl::values(clEnumValN(::ds::kernels::Device::Cpu, "cpu", ""),
                                clEnumValN(::ds::kernels::Device::Cuda, "cuda", ""))}]>,
    Option<"tf32", "tf32", "bool", "false", "on CUDA, float32 factors of products may be rounded to TF32">,
    Option<"threads", "threads", "int64_t", "1", "compute workers that workspaces are cut for">,
    Option<"workspaceBytesPerThread", "workspace-bytes-per-thread", "int64_t", "0",
           "most bytes of a workspace for each worker; 0: no kernel that has one may be used">];
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
    Within each routine. Commands that touch the same bytes, one of them writing, keep their order, so no bit changes;
    collectives keep theirs among each other, and nothing passes a command that waits for an event or signals one, so what
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
    For devices that record what a run enqueues and launch the record as one (a CUDA graph): `step` becomes `captured`, if every
    arena that it uses is the device's or the host's and no role's run has more than `commands` commands: a record costs the
    device memory of its reserve for each of them, and it is launched whole. Roles decide alike, for all ranks must launch a
    collective in the same way. A mark that a user wrote stays, and is refused where it cannot be. Switch off to bisect.
  }];
  let options = [Option<"commands", "commands", "int64_t", "65536", "most commands of a run that is recorded">];
}

def VerifyPlanForm : DsPass<"ds-verify-plan-form"> {
  let summary = "check that nothing is left to decide";
  let description = [{
    Every buffer has an offset inside its arena and is written before it is read; every feed names a `plan.input`; no op of another
    dialect is left outside `@reference`.
  }];
}

#endif // DS_PASSES_PLAN_TD
