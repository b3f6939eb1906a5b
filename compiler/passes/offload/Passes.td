//===- Passes.td - what leaves device memory until it is needed again ------===//
#ifndef DS_PASSES_OFFLOAD_TD
#define DS_PASSES_OFFLOAD_TD

include "compiler/passes/base/PassBase.td"

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
    way. Cf. cpu_checkpointing of DeepSpeed and torch.autograd.graph.save_on_cpu, whose transfers are found at run time.
  }];
  let options = [
    Option<"leastBytes", "least-bytes", "int64_t", "4096", "smaller tensors stay">,
  ];
}

#endif // DS_PASSES_OFFLOAD_TD
