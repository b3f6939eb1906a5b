//===- KernelWriter.h - writes the call of one kernel -----------------------===//
//
// Names of operands and attributes are looked up in the kernel's row while this is compiled: one that the row does not
// have, or an attribute of another kind, fails the build.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/analysis/KernelSelection.h"
#include "kernels/KernelRows.h"

#include "mlir/IR/Builders.h"

namespace ds {

template <kernels::KernelName kernelName> class KernelWriter {
  static constexpr const kernels::KernelRow &row = kernels::kernel<kernelName>;

  template <kernels::AttributeKind kind> struct Name {
    llvm::StringRef name;
    consteval Name(const char *wanted) : name(wanted) {
      if (row.attributes[row.attribute(wanted)].kind != kind)
        throw "the row says another kind";
    }
  };
  using Kind = kernels::AttributeKind;

  struct OperandName {
    size_t index;
    consteval OperandName(const char *wanted) : index(row.operand(wanted)) {}
  };

public:
  explicit KernelWriter(mlir::MLIRContext *context) : builder_(context) {}

  KernelWriter &with(Name<Kind::Integer> name, int64_t value) { return add(name, builder_.getI64IntegerAttr(value)); }
  KernelWriter &with(Name<Kind::Flag> name, bool value) { return add(name, builder_.getI64IntegerAttr(value)); }
  KernelWriter &with(Name<Kind::Number> name, const llvm::APFloat &value) {
    return add(name, builder_.getF64FloatAttr(value.convertToDouble()));
  }
  KernelWriter &with(Name<Kind::Integers> name, llvm::ArrayRef<int64_t> values) {
    return add(name, builder_.getDenseI64ArrayAttr(values));
  }
  KernelWriter &with(Name<Kind::Numbers> name, llvm::ArrayRef<double> values) {
    return add(name, builder_.getDenseF64ArrayAttr(values));
  }
  KernelWriter &with(Name<Kind::Text> name, llvm::StringRef value) { return add(name, builder_.getStringAttr(value)); }
  /// Attributes that travel through the IR as they are.
  KernelWriter &with(mlir::DictionaryAttr attributes) {
    call_.attributes.append(attributes.begin(), attributes.end());
    return *this;
  }

  KernelWriter &read(mlir::ValueRange values) {
    for (mlir::Value value : values)
      call_.read(value);
    return *this;
  }
  KernelWriter &write(mlir::ValueRange values) {
    for (mlir::Value value : values)
      call_.write(value);
    return *this;
  }
  /// The memory of a variable, read or written as the row says. Operands come in the row's order.
  KernelWriter &variable(OperandName operand, mlir::FlatSymbolRefAttr name, mlir::RankedTensorType type) {
    const kernels::OperandAccess access = row.operands[operand.index].access;
    call_.variable(name.getAttr(), type,
                   access == kernels::OperandAccess::Read    ? plan::Access::Read
                   : access == kernels::OperandAccess::Write ? plan::Access::Write
                                                             : plan::Access::ReadWrite);
    return *this;
  }

  KernelCall call() { return std::move(call_); }
  /// An op whose operands and results are the kernel's, in their order.
  KernelCall call(mlir::Operation *op) { return read(op->getOperands()).write(op->getResults()).call(); }

private:
  template <Kind kind> KernelWriter &add(Name<kind> name, mlir::Attribute value) {
    call_.attributes.push_back(builder_.getNamedAttr(name.name, value));
    return *this;
  }

  mlir::Builder builder_;
  KernelCall call_{std::string(row.name), {}, {}};
};

/// A writer for the kernel that is named as the op.
template <typename OpTy> auto writerOf(OpTy op) {
  constexpr std::string_view prefix = "train.", name = OpTy::getOperationName();
  return KernelWriter<kernels::KernelName(name.substr(prefix.size()))>(op->getContext());
}

} // namespace ds
