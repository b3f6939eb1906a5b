// RUN: ds-opt %s --ds-assign-offsets=alignment=64 --split-input-file | FileCheck %s

// Tests that a buffer takes over the bytes of one that died before it was written; what dies with the command that writes the
// next does not.
// CHECK-LABEL: plan.role @reuse
// CHECK-NEXT:  plan.arena @device space device bytes 384 peak 384
// CHECK:       plan.buffer "a" in @device bytes 256 {{.*}} at 0 lives [0, 0, 0, 0, 1]
// CHECK-NEXT:  plan.buffer "b" in @device bytes 128 {{.*}} at 256 lives [0, 0, 1, 0, 2]
// CHECK-NEXT:  plan.buffer "c" in @device bytes 256 {{.*}} at 0 lives [0, 0, 2, 0, 2]
plan.role @reuse ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %a = plan.buffer "a" in @device bytes 256 scope call category activations slots 1  // live in [0, 2)  +0
  %b = plan.buffer "b" in @device bytes 128 scope call category activations slots 1  // live in [1, 3)  +256
  %c = plan.buffer "c" in @device bytes 256 scope call category activations slots 1  // live in [2, 3)  +0
  plan.routine @forward phase forward stage 0 {
    plan.fill (%a) : [tensor<64xf32>] access [2] at [0] on @compute
    plan.kernel "reduce_sum" {} (%a, %b) : [tensor<64xf32>, tensor<32xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "gather" {} (%b, %c) : [tensor<32xf32>, tensor<64xf32>] access [1, 2] at [0, 0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}

// -----

// Tests scopes where micro-batches repeat a routine: state lives always; an accumulator from the fill before them to the
// update after them, so that no scratch of the repeated routine may lie on it; inputs in two slots all program long.
// CHECK-LABEL: plan.role @scopes
// CHECK:       plan.buffer "w" in @device bytes 64 scope plan {{.*}} at 128
// CHECK-NOT:   lives
// CHECK:       plan.buffer "x" in @device bytes 40 scope slot {{.*}} slots 2 at 0 then [64] lives [0, 1, 0, 2, 0]
// CHECK-NEXT:  plan.buffer "gradient" in @device bytes 64 scope step {{.*}} at 192 lives [0, 0, 0, 3, 0]
// CHECK-NEXT:  plan.buffer "scratch" in @device bytes 64 scope call {{.*}} at 256 lives [0, 2, 0, 2, 1]
// CHECK-NEXT:  plan.buffer "late" in @device bytes 64 scope call {{.*}} at 256 lives [0, 3, 0, 3, 0]
plan.role @scopes ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %w = plan.buffer "w" in @device bytes 64 scope plan category weights slots 1 of @w           // always
  %x = plan.buffer "x" in @device bytes 40 scope slot category inputs slots 2                   // [0, 5), 2 * 64 bytes
  %g = plan.buffer "gradient" in @device bytes 64 scope step category gradients slots 1         // [0, 5)
  %s = plan.buffer "scratch" in @device bytes 64 scope call category activations slots 1        // [2, 4)
  %l = plan.buffer "late" in @device bytes 64 scope call category activations slots 1           // [4, 5)
  plan.routine @begin phase begin {
    plan.fill (%g) : [tensor<16xf32>] access [2] at [0] on @compute
  }
  plan.routine @feed phase feed stage 0 {
    plan.fill (%x) : [tensor<10xf32>] access [2] at [0] on @compute
  }
  plan.routine @backward phase backward stage 0 {
    plan.kernel "slice" {} (%x, %s) : [tensor<10xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "elementwise" {} (%g, %s, %g) : [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] at [0, 0, 0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "sgd" {} (%w, %g, %l) : [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [3, 1, 2] at [0, 0, 0] on @compute
  }
  plan.program "step" {
    plan.call @begin microbatch 0
    plan.call @feed microbatch 0
    plan.call @feed microbatch 1
    plan.call @backward microbatch 0
    plan.call @backward microbatch 1
    plan.call @update microbatch 1
  }
}

// -----

// Tests a step's value that a repeated routine writes late and the update reads: the routine runs again before, so nothing that
// it writes early may lie there.
// CHECK-LABEL: plan.role @repeated
// CHECK:       plan.buffer "early" in @device bytes 64 {{.*}} at [[EARLY:[0-9]+]] lives
// CHECK-NOT:   at [[EARLY]] lives
// CHECK:       plan.routine
plan.role @repeated ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %e = plan.buffer "early" in @device bytes 64 scope call category activations slots 1  // [0, 1)
  %s = plan.buffer "kept" in @device bytes 64 scope step category gradients slots 1     // [0, 3), though first used at 1
  plan.routine @backward phase backward stage 0 {
    plan.fill (%e) : [tensor<16xf32>] access [2] at [0] on @compute
    plan.fill (%s) : [tensor<16xf32>] access [2] at [0] on @compute
  }
  plan.routine @update phase update {
    plan.kernel "block_sum_squares" {} (%s) : [tensor<16xf32>] access [1] at [0] on @compute
  }
  plan.program "step" {
    plan.call @backward microbatch 0
    plan.call @backward microbatch 1
    plan.call @update microbatch 1
  }
}

// -----

// Tests that a metric lives to the end of its program, where the host reads it, and that a second program reuses its bytes.
// CHECK-LABEL: plan.role @metric
// CHECK-NEXT:  plan.arena @device space device bytes 128 peak 68
// CHECK:       plan.buffer "loss" in @device bytes 4 {{.*}} at 64 lives [0, 0, 0, 0, 1]
// CHECK-NEXT:  plan.buffer "after" in @device bytes 64 {{.*}} at 0 lives [0, 0, 1, 0, 1]
// CHECK-NEXT:  plan.buffer "other" in @device bytes 64 {{.*}} at 0 lives [1, 1, 0, 1, 0]
plan.role @metric ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %loss = plan.buffer "loss" in @device bytes 4 scope step category optimizer slots 1    // [0, 2), though last used at 0
  %after = plan.buffer "after" in @device bytes 64 scope call category activations slots 1 // [1, 2)
  %other = plan.buffer "other" in @device bytes 64 scope call category activations slots 1 // [2, 3)
  plan.routine @forward phase forward stage 0 {
    plan.fill (%loss) : [tensor<f32>] access [2] at [0] on @compute
    plan.fill (%after) : [tensor<16xf32>] access [2] at [0] on @compute
  }
  plan.routine @evaluate phase evaluate stage 0 {
    plan.fill (%other) : [tensor<16xf32>] access [2] at [0] on @compute
  }
  plan.routine @nothing phase forward stage 0 {
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @nothing microbatch 0
    plan.metric "loss" %loss : tensor<f32>
  }
  plan.program "evaluate" {
    plan.call @evaluate microbatch 0
  }
}

// -----

// Tests that arenas are laid out apart, and that a role without programs has one, too.
// CHECK-LABEL: plan.role @arenas
// CHECK:       plan.arena @device space device bytes 64 peak 64
// CHECK:       plan.arena @host space host bytes 64 peak 8
// CHECK:       plan.buffer "a" {{.*}} at 0
// CHECK:       plan.buffer "b" {{.*}} at 0
plan.role @arenas ranks [0, 0] {
  plan.arena @device space device
  plan.arena @host space host
  %a = plan.buffer "a" in @device bytes 64 scope call category activations slots 1
  %b = plan.buffer "b" in @host bytes 8 scope call category activations slots 1
}

// -----

// Tests two queues: the collective may begin when "a" is written (command 0) and end when command 4 waits for it, though it
// stands between; so its target "t" shares no bytes with "b" or "c", and "d", born where the wait is, none with it.
// CHECK-LABEL: plan.role @queues
// CHECK:       plan.buffer "a" {{.*}} at 64 lives [0, 0, 0, 0, 2]
// CHECK:       plan.buffer "t" {{.*}} at 0 lives [0, 0, 0, 0, 4]
// CHECK:       plan.buffer "b" {{.*}} at 128 lives [0, 0, 2, 0, 3]
// CHECK:       plan.buffer "c" {{.*}} at 64 lives [0, 0, 3, 0, 4]
// CHECK:       plan.buffer "d" {{.*}} at 128 lives [0, 0, 4, 0, 5]
plan.communicator @data_ranks axes [0]
plan.role @queues ranks [0, 1] {
  plan.arena @device space device
  plan.queue @compute kind compute
  plan.queue @collective kind collective
  plan.event @ready
  plan.event @done
  %a = plan.buffer "a" in @device bytes 64 scope call category activations slots 1
  %t = plan.buffer "t" in @device bytes 64 scope call category communication slots 1
  %b = plan.buffer "b" in @device bytes 64 scope call category activations slots 1
  %c = plan.buffer "c" in @device bytes 64 scope call category activations slots 1
  %d = plan.buffer "d" in @device bytes 64 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.fill (%a) : [tensor<16xf32>] access [2] at [0] on @compute signal [@ready]
    plan.collective broadcast (%t, %t) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] over @data_ranks on @collective wait [@ready] [0] signal [@done]
    plan.kernel "x" {} (%a, %b) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "x" {} (%b, %c) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute
    plan.kernel "x" {} (%c, %d) : [tensor<16xf32>, tensor<16xf32>] access [1, 2] at [0, 0] on @compute wait [@done] [0]
    plan.kernel "x" {} (%d) : [tensor<16xf32>] access [1] at [0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
  }
}

// -----

// Tests that what every micro-batch reads in its forward is alive in the backwards between, although none of them uses it.
// CHECK-LABEL: plan.role @between
// CHECK:       plan.buffer "kept" in @device bytes 64 scope step {{.*}} at 0
// CHECK-NEXT:  plan.buffer "scratch" in @device bytes 64 scope call {{.*}} at 64
// CHECK-NEXT:  plan.buffer "late" in @device bytes 64 scope call {{.*}} at 0
plan.role @between ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %kept = plan.buffer "kept" in @device bytes 64 scope step category communication slots 1      // gather to backward
  %scratch = plan.buffer "scratch" in @device bytes 64 scope call category workspace slots 1    // backward
  %late = plan.buffer "late" in @device bytes 64 scope call category workspace slots 1          // update
  plan.routine @gather phase gather stage 0 {
    plan.fill (%kept) : [tensor<16xf32>] access [2] at [0] on @compute
  }
  plan.routine @forward phase forward stage 0 {
    plan.kernel "f" {} (%kept) : [tensor<16xf32>] access [1] at [0] on @compute
  }
  plan.routine @backward phase backward stage 0 {
    plan.fill (%scratch) : [tensor<16xf32>] access [2] at [0] on @compute
  }
  plan.routine @update phase update {
    plan.fill (%late) : [tensor<16xf32>] access [2] at [0] on @compute
  }
  plan.program "step" {
    plan.call @gather microbatch 0
    plan.call @forward microbatch 0
    plan.call @backward microbatch 0
    plan.call @forward microbatch 1
    plan.call @backward microbatch 1
    plan.call @update microbatch 0
  }
}

// -----

// Tests micro-batches in flight: "kept" is held for two of them, "grown" comes to life in the backward in which "kept" dies, and every
// copy of it takes the bytes of its own micro-batch, though only one is ever alive. The peak is that of the calls: two of "kept".
// CHECK-LABEL: plan.role @turns
// CHECK-NEXT:  plan.arena @device space device bytes 512 peak 512
// CHECK:       plan.buffer "kept" in @device bytes 256 scope slot category activations slots 2 at [[FIRST:[0-9]+]] then {{\[}}[[SECOND:[0-9]+]]]
// CHECK-NEXT:  plan.buffer "grown" in @device bytes 256 scope slot category activations slots 2 at [[FIRST]] then {{\[}}[[SECOND]]]
plan.role @turns ranks [0, 0] {
  plan.arena @device space device
  plan.queue @compute kind compute
  %k = plan.buffer "kept" in @device bytes 256 scope slot category activations slots 2
  %g = plan.buffer "grown" in @device bytes 256 scope slot category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.fill (%k) : [tensor<64xf32>] access [2] at [0] on @compute
  }
  plan.routine @backward phase backward stage 0 {
    plan.kernel "f" {} (%k) : [tensor<64xf32>] access [1] at [0] on @compute
    plan.fill (%g) : [tensor<64xf32>] access [2] at [0] on @compute
  }
  plan.routine @weight phase weight stage 0 {
    plan.kernel "f" {} (%g) : [tensor<64xf32>] access [1] at [0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @forward microbatch 1
    plan.call @backward microbatch 0
    plan.call @weight microbatch 0
    plan.call @forward microbatch 2
    plan.call @backward microbatch 1
    plan.call @weight microbatch 1
    plan.call @backward microbatch 2
    plan.call @weight microbatch 2
  }
}

// -----

// Tests messages. "late" arrives once a step, when the scratch of the forward is done with, since its receive waits for that, and takes
// its bytes; "early" may arrive any time. "sent" has left when a later command waits for that, and lives until then.
// CHECK-LABEL: plan.role @messages
// CHECK:       plan.buffer "scratch" {{.*}} at [[PLACE:[0-9]+]] lives
// CHECK-NEXT:  plan.buffer "late" {{.*}} at [[PLACE]] lives
// CHECK-NEXT:  plan.buffer "early" {{.*}} at [[EARLY:[0-9]+]] lives
// CHECK-NEXT:  plan.buffer "sent" {{.*}} at {{[0-9]+}} lives [0, 0, 0, 0, 3]
// CHECK-NOT:   at [[EARLY]] lives
plan.channel @in axis 0 from 0 to 1
plan.channel @other axis 0 from 0 to 1
plan.channel @out axis 0 from 1 to 0
plan.role @messages ranks [1, 1] {
  plan.arena @device space device
  plan.queue @compute kind compute
  plan.queue @in kind message
  plan.queue @other kind message
  plan.queue @out kind message
  plan.event @computed
  plan.event @received
  plan.event @ready
  plan.event @left
  %scratch = plan.buffer "scratch" in @device bytes 256 scope call category activations slots 1
  %late = plan.buffer "late" in @device bytes 256 scope slot category activations slots 1
  %early = plan.buffer "early" in @device bytes 128 scope slot category activations slots 1
  %sent = plan.buffer "sent" in @device bytes 64 scope call category activations slots 1
  plan.routine @forward phase forward stage 0 {
    plan.fill (%sent) : [tensor<16xf32>] access [2] at [0] on @compute signal [@ready]
    plan.send @out(%sent) : [tensor<16xf32>] access [1] at [0] on @out wait [@ready] [0] signal [@left]
    plan.fill (%scratch) : [tensor<64xf32>] access [2] at [0] on @compute
    plan.kernel "f" {} (%scratch) : [tensor<64xf32>] access [1] at [0] on @compute wait [@left] [0] signal [@computed]
  }
  plan.routine @receive phase receive stage 0 {
    plan.receive @in(%late) : [tensor<64xf32>] access [2] at [0] on @in wait [@computed] [0] signal [@received]
    plan.receive @other(%early) : [tensor<32xf32>] access [2] at [0] on @other
  }
  plan.routine @update phase update {
    plan.kernel "f" {} (%late) : [tensor<64xf32>] access [1] at [0] on @compute wait [@received] [0]
    plan.kernel "f" {} (%early) : [tensor<32xf32>] access [1] at [0] on @compute
  }
  plan.program "step" {
    plan.call @forward microbatch 0
    plan.call @receive microbatch 0
    plan.call @update microbatch 0
  }
}

// -----

// Tests that what lives for good comes first where plans of several sizes share it: by name, constants last.
// CHECK-LABEL: plan.role @state_first
// CHECK-NEXT:  plan.arena @device space device bytes 448 peak 328
// CHECK:       plan.buffer "scratch" {{.*}} at 192 lives
// CHECK-NEXT:  plan.buffer "a constant" {{.*}} at 128
// CHECK-NEXT:  plan.buffer "weight" {{.*}} at 64
// CHECK-NEXT:  plan.buffer "moment" {{.*}} at 0
module attributes {plan.state_first} {
  plan.role @state_first ranks [0, 0] {
    plan.arena @device space device
    plan.queue @compute kind compute
    %s = plan.buffer "scratch" in @device bytes 256 scope call category activations slots 1
    %c = plan.buffer "a constant" in @device bytes 4 scope plan category constants slots 1 of @c
    %w = plan.buffer "weight" in @device bytes 64 scope plan category weights slots 1 of @w
    %m = plan.buffer "moment" in @device bytes 4 scope plan category optimizer slots 1 of @m
    plan.routine @forward phase forward stage 0 {
      plan.fill (%s) : [tensor<64xf32>] access [2] at [0] on @compute
      plan.fill (%w) : [tensor<16xf32>] access [2] at [0] on @compute
    }
    plan.program "step" {
      plan.call @forward microbatch 0
    }
  }
}
