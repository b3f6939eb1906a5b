// RUN: ds-opt %s --ds-verify-dist-form --split-input-file --verify-diagnostics

// expected-error @+1 {{is left over; ds-outline-fragments should have cut it into fragments}}
func.func @microbatch() {
  return
}

// -----

dist.value @h : tensor<f32>
dist.fragment @forward phase forward stage 0 {
  %0 = train.constant dense<1.0> : tensor<f32>
  dist.store %0 as @h : tensor<f32>
}
dist.fragment @backward phase backward stage 0 {
  // expected-note @+1 {{loaded here}}
  %0 = dist.load @h : tensor<f32>
}
dist.role @main ranks [0, 0] {
  dist.program @other_microbatch {
    dist.call @forward microbatch 0
    // expected-error @+1 {{op loads @h of micro-batch 1, which no earlier call stored}}
    dist.call @backward microbatch 1
  }
}

// -----

dist.value @h : tensor<f32>
dist.fragment @forward phase forward stage 0 {
  %0 = train.constant dense<1.0> : tensor<f32>
  dist.store %0 as @h : tensor<f32>
}
dist.fragment @backward phase backward stage 0 {
  // expected-note @+1 {{loaded here}}
  %0 = dist.load @h : tensor<f32>
}
dist.role @main ranks [0, 0] {
  dist.program @first {
    dist.call @forward microbatch 0
  }
  // What one program stored is gone in the next.
  dist.program @second {
    // expected-error @+1 {{op loads @h of micro-batch 0, which no earlier call stored}}
    dist.call @backward microbatch 0
  }
}

// -----

dist.mesh @mesh ["data"] [2]
train.variable parameter @w : tensor<8xf32> from #train.fill<0.0>
// expected-note @below {{declared here}}
dist.bucket @zero.0 on @mesh axis "data" : tensor<2048xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@w] at [0]
dist.fragment @forward phase forward stage 0 {
  // expected-error @+1 {{op names @w, of which a rank holds a slice in bucket @zero.0; see ds-insert-reductions, ds-shard-optimizer, ds-insert-parameter-gathers}}
  %0 = train.read @w : tensor<8xf32>
}

// -----

// expected-note @below {{mesh declared here}}
dist.mesh @mesh ["pipe"] [2]
// expected-error @+1 {{op leads from 0 to 2; the mesh's axis "pipe" has 2 ranks}}
dist.channel @far axis "pipe" from 0 to 2

// -----

dist.mesh @mesh ["pipe"] [2]
// expected-error @+1 {{op has no dist.receive}}
dist.channel @c axis "pipe" from 0 to 1
dist.fragment @a phase forward stage 0 {
  %0 = train.constant dense<1.0> : tensor<f32>
  // expected-note @below {{the other}}
  dist.send %0 on @c : tensor<f32>
}

// -----

dist.mesh @mesh ["pipe"] [2]
dist.channel @c axis "pipe" from 0 to 1
dist.value @x : tensor<4xf32>
dist.fragment @a phase forward stage 0 {
  %0 = train.constant dense<1.0> : tensor<f32>
  // expected-error @+1 {{op sends other types than are received on @c}}
  dist.send %0 on @c : tensor<f32>
}
dist.fragment @b phase forward stage 0 {
  // expected-note @+1 {{received here}}
  dist.receive [@x] on @c
}

// -----

dist.mesh @mesh ["pipe"] [2]
dist.channel @c axis "pipe" from 0 to 1
dist.fragment @a phase forward stage 0 {
  %0 = train.constant dense<1.0> : tensor<f32>
  // expected-note @below {{the other}}
  dist.send %0 on @c : tensor<f32>
  // expected-error @+1 {{op sends on @c, on which another op sends}}
  dist.send %0 on @c : tensor<f32>
}

// -----

dist.mesh @mesh ["pipe"] [2]
dist.channel @c axis "pipe" from 0 to 1
dist.value @x : tensor<4xf32>
dist.fragment @a phase forward stage 0 {
  // expected-note @below {{the other}}
  dist.receive [@x] on @c
  // expected-error @+1 {{op receives on @c, on which another op receives}}
  dist.receive [@x] on @c
}
