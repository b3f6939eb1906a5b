//===- TransferOps.td - tensors between memory spaces ---------------------===//
#ifndef DS_DIST_TRANSFER_OPS_TD
#define DS_DIST_TRANSFER_OPS_TD

include "dialects/Dist/DistDialect.td"

/// plan.proto's Arena.space.
def Dist_MemorySpace : I32EnumAttr<"MemorySpace", "where a tensor lies", [
    I32EnumAttrCase<"Device", 1, "device">, I32EnumAttrCase<"Host", 2, "host">, I32EnumAttrCase<"Nvme", 3, "nvme">]> {
  let cppNamespace = "::ds::dist";
}

def Dist_TransferOp : Dist_Op<"transfer", [Pure, HasParent<"FragmentOp">, AllTypesMatch<["tensor", "result"]>]> {
  let summary = "a tensor in another memory space";
  let description = [{
    What a fragment computes lies in device memory; what a transfer has put elsewhere is there for another transfer, or for a
    later fragment's. Cf. cudaMemcpyAsync.

    ```mlir
    %h = dist.transfer %x from device to host : tensor<4x64xf32>
    %d = dist.transfer %h from host to device : tensor<4x64xf32>
    ```

    **Constraints**
    - (transfer_c1) `from` and `to` differ.
    - (transfer_c2) the tensor lies in `from`: where the transfer that made it put it, where the value lies that it is loaded
      from, else in device memory.
    - (transfer_c3) only transfers, and stores of values that lie there, use a result that lies outside device memory.
  }];
  let arguments = (ins Dist_Static:$tensor, Dist_MemorySpace:$from, Dist_MemorySpace:$to);
  let results = (outs Dist_Static:$result);
  let assemblyFormat = "$tensor `from` $from `to` $to attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // DS_DIST_TRANSFER_OPS_TD
