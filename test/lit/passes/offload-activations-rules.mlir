// RUN: ds-opt %s "--ds-offload-activations=least-bytes=64 rules=first$=nvme,second$=device" | FileCheck %s --check-prefix=RULES
// RUN: not ds-opt %s --ds-offload-activations=rules=tenth=host 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ds-opt %s --ds-offload-activations=rules=first=disk 2>&1 | FileCheck %s --check-prefix=SPACE

// NONE: error: "tenth" is to leave device memory, but matches no tensor of at least 4096 bytes that the backward reads from the forward
// SPACE: error: rule "first=disk" must end in =device, =host or =nvme

// Tests rules by the names of ops: the first that matches decides, what none matches stays. What goes to NVMe passes
// through host memory, and is read there one place earlier than it comes back.
// RULES:       dist.value @a : tensor<64xf32> in nvme
// RULES-DAG:   dist.value @b : tensor<64xf32>{{$}}
// RULES-DAG:   dist.value @c : tensor<64xf32>{{$}}
// RULES-LABEL: dist.fragment @forward
// RULES:         %[[A:.*]] = train.exp
// RULES-NEXT:    %[[THERE:.*]] = dist.transfer %[[A]] from device to host
// RULES-NEXT:    %[[KEPT:.*]] = dist.transfer %[[THERE]] from host to nvme
// RULES-NEXT:    dist.store %[[KEPT]] as @a
// RULES-LABEL: dist.fragment @backward
// RULES-NEXT:    %[[LOADED:.*]] = dist.load @a
// RULES-NEXT:    %[[HELD:.*]] = dist.transfer %[[LOADED]] from nvme to host
// RULES-NEXT:    %[[BACK:.*]] = dist.transfer %[[HELD]] from host to device
dist.mesh @mesh ["data"] [1]
dist.value @a : tensor<64xf32>
dist.value @b : tensor<64xf32>
dist.value @c : tensor<64xf32>
dist.fragment @forward phase forward stage 0 {
  %x = train.constant dense<1.0> : tensor<64xf32>
  %a = train.exp %x : (tensor<64xf32>) -> tensor<64xf32> loc("h.first")
  %b = train.exp %a : (tensor<64xf32>) -> tensor<64xf32> loc("h.second")
  %c = train.exp %b : (tensor<64xf32>) -> tensor<64xf32> loc("h.third")
  dist.store %a as @a : tensor<64xf32>
  dist.store %b as @b : tensor<64xf32>
  dist.store %c as @c : tensor<64xf32>
}
dist.fragment @backward phase backward stage 0 {
  %a = dist.load @a : tensor<64xf32>
  %b = dist.load @b : tensor<64xf32>
  %c = dist.load @c : tensor<64xf32>
  %d = train.mul %a, %b : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %e = train.mul %d, %c : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
}
