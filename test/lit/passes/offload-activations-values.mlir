// RUN: ds-opt %s "--ds-offload-activations=least-bytes=64 rules=third$=device,.*=host" | FileCheck %s --check-prefix=ALL
// RUN: ds-opt %s "--ds-offload-activations=least-bytes=64 rules=third$=device values=a" | FileCheck %s --check-prefix=ONE
// RUN: ds-opt %s "--ds-offload-activations=least-bytes=64 rules=third$=device values=c" | FileCheck %s --check-prefix=OTHER
// RUN: not ds-opt %s --ds-offload-activations=values=a,d 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: error: "d" is to leave device memory, but is no dist.value

// Tests that the module names what left by a rule that takes all, what is away longest first: what is computed first and used
// last.
// ALL:      module attributes {dist.left = {bytes = array<i64: 256, 512>, values = ["a", "b"]}}
// ALL:      dist.value @a : tensor<64xf32> in host
// ALL-NEXT: dist.value @b : tensor<128xf32> in host
// ALL-NEXT: dist.value @c : tensor<64xf32>{{$}}

// Tests that values leave by their own names. One comes back when what is used before it is used, whether that was away or not.
// ONE-NOT:   dist.left
// ONE:       dist.value @a : tensor<64xf32> in host
// ONE-NEXT:  dist.value @b : tensor<128xf32>{{$}}
// ONE-LABEL: dist.fragment @backward
// ONE:         train.exp
// ONE-NEXT:    %[[HELD:.*]] = dist.load @a
// ONE-NEXT:    %[[BACK:.*]] = dist.transfer %[[HELD]] from host to device
// ONE-NEXT:    train.exp
// ONE-NEXT:    train.exp %[[BACK]]

// Tests that a rule decides before a name does.
// OTHER-NOT: in host
dist.mesh @mesh ["data"] [1]
dist.value @a : tensor<64xf32>
dist.value @b : tensor<128xf32>
dist.value @c : tensor<64xf32>
dist.fragment @forward phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<64xf32>
  %y = train.constant dense<1.0> : tensor<128xf32>
  %a = train.exp %x : (tensor<64xf32>) -> tensor<64xf32> loc("h.first")
  %b = train.exp %y : (tensor<128xf32>) -> tensor<128xf32> loc("h.second")
  %c = train.exp %a : (tensor<64xf32>) -> tensor<64xf32> loc("h.third")
  dist.store %a as @a : tensor<64xf32>
  dist.store %b as @b : tensor<128xf32>
  dist.store %c as @c : tensor<64xf32>
}
dist.fragment @backward phase backward stage 0 {
  %a = dist.load @a : tensor<64xf32>
  %b = dist.load @b : tensor<128xf32>
  %c = dist.load @c : tensor<64xf32>
  %d = train.exp %c : (tensor<64xf32>) -> tensor<64xf32>
  %e = train.exp %b : (tensor<128xf32>) -> tensor<128xf32>
  %f = train.exp %a : (tensor<64xf32>) -> tensor<64xf32>
}
