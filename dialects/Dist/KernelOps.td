//===- KernelOps.td - calls of kernels on tensors -------------------------===//
#ifndef DS_DIST_KERNEL_OPS_TD
#define DS_DIST_KERNEL_OPS_TD

include "dialects/Dist/DistDialect.td"

def Dist_KernelOp : Dist_Op<"kernel", [HasParent<"FragmentOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "call a kernel of kernels/Kernels.inc on tensors and variables";
  let description = [{
    What `ds-select-kernels` makes of a train op. Operands of the kernel stand in its order; `access` says what it does to
    each (numbers of plan's Access: 1 read, 2 write, 3 read and write), `as` the tensor that it sees. An operand is the
    variable of that place in `of`; where that is `unit`, or without `of`, it is the next input if it is read and the next
    result if it is written. `workspace` is the bytes of scratch that the kernel takes behind its operands; without it the
    kernel takes none.

    ```mlir
    %0 = dist.kernel "transpose" {perm = array<i64: 1, 0>}(%x) access [1, 2] as [tensor<2x3xf32>, tensor<3x2xf32>]
        : (tensor<2x3xf32>) -> tensor<3x2xf32>
    dist.kernel "increment" {}() access [3] as [tensor<i64>] of [@step] : () -> ()
    ```

    **Constraints**
    - (kernel_c1) there are as many accesses as tensors, and as many entries of `of`, or none.
    - (kernel_c2) of the operands that are no variables, as many are read as there are inputs and as many written as there
      are results; none is both.
    - (kernel_c3) an entry of `of` is `unit` or names state.
    - (kernel_c4) `workspace` is not negative.
  }];
  let arguments = (ins StrAttr:$kernel, DictionaryAttr:$arguments, Variadic<Dist_Static>:$inputs,
                       DenseI32ArrayAttr:$accesses, TypeArrayAttr:$types, DefaultValuedAttr<ArrayAttr, "{}">:$variables,
                       OptionalAttr<I64Attr>:$workspace);
  let results = (outs Variadic<Dist_Static>:$results);
  let assemblyFormat = [{
    $kernel $arguments `(` $inputs `)` `access` $accesses `as` $types (`of` $variables^)? (`workspace` $workspace^)?
    attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// One operand of the kernel: a value, which it reads or defines, or a variable.
    struct Operand {
      ::mlir::Value value;         // null for a variable
      ::mlir::StringAttr variable; // null for a value
      ::mlir::RankedTensorType type;
      bool reads, writes;
      int32_t access;
    };
    /// In the kernel's order.
    ::llvm::SmallVector<Operand> getOperandsOfKernel();
  }];
  let hasVerifier = 1;
}

#endif // DS_DIST_KERNEL_OPS_TD
