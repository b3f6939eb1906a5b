// RUN: ds-opt %s --ds-verify-overlapped-form --split-input-file --verify-diagnostics

dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
dist.bucket @zp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@p] at [0]
dist.fragment @forward phase forward stage 0 {
  %own = train.read @zp : tensor<1024xf32>
  // expected-error @+1 {{op is never waited for; ds-split-async-collectives makes one done for every start}}
  %t = dist.all_gather_start %own on @mesh axis "data" : (tensor<1024xf32>) -> !dist.token
}

// -----

// What a collective reads is written too early.
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
dist.bucket @zp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <sharded "data" dim 0> members [@p] at [0]
dist.fragment @update phase update pipe 0 {
  %own = train.read @zp : tensor<1024xf32>
  // expected-note @+1 {{started here}}
  %t = dist.all_gather_start %own on @mesh axis "data" : (tensor<1024xf32>) -> !dist.token
  %next = train.exp %own : (tensor<1024xf32>) -> tensor<1024xf32>
  // expected-error @+1 {{op touches @zp while a collective that holds it is under way; ds-split-async-collectives should have put its done before}}
  train.store %next into @zp : tensor<1024xf32>
  // expected-note @+1 {{done here}}
  %all = dist.all_gather_done %t : (!dist.token) -> tensor<4096xf32>
}

// -----

// What a collective writes is read half-written, by the name of a member of its bucket.
dist.mesh @mesh ["data"] [4]
train.variable parameter @p : tensor<1024xf32> from #train.fill<0.0> {trainable}
dist.bucket @zp on @mesh axis "data" : tensor<4096xf32> slices tensor<1024xf32> sharding <replicated> members [@p] at [0]
dist.fragment @update phase update pipe 0 {
  %own = train.read @zp : tensor<1024xf32>
  // expected-note @+1 {{started here}}
  %t = dist.all_gather_start %own into [@zp] on @mesh axis "data" : (tensor<1024xf32>) -> !dist.token
  // expected-error @+1 {{op touches @p while a collective that holds it is under way}}
  %p = train.read @p : tensor<1024xf32>
  // expected-note @+1 {{done here}}
  dist.all_gather_done %t : (!dist.token) -> ()
}
