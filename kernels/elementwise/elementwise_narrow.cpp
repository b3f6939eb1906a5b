#include "kernels/elementwise/elementwise_narrow.h"

#include <map>

namespace ds::kernels {

namespace {

class Widener {
public:
  explicit Widener(const ElementwiseCall &call) : call_(call) {
    for (size_t i = 0; i < call.inputs; ++i)
      define(int64_t(i), call.types[i]);
  }

  Invocation run(const Invocation &invocation) {
    for (const ElementwiseInstruction &instruction : call_.program)
      define(rewrite(instruction), instruction.type);
    std::vector<int64_t> results;
    for (int result : call_.results)
      results.push_back(registers_[size_t(result)]);
    Invocation wide = invocation;
    wide.attributes["program"] = code_;
    wide.attributes["constants"] = constants_;
    wide.attributes["results"] = results;
    return wide;
  }

private:
  void define(int64_t reg, DType type) {
    registers_.push_back(reg);
    types_.push_back(type);
  }

  int64_t emit(ElementwiseOp op, DType type, int64_t a = -1, int64_t b = -1, int64_t c = -1) {
    code_.insert(code_.end(), {int64_t(op), int64_t(type), a, b, c});
    return int64_t(call_.inputs + code_.size() / elementwiseInstructionWidth) - 1;
  }

  /// The register that holds what register `old` of the given program does, in float32 if that has 16 bits.
  int64_t wide(int old) {
    if (old < 0)
      return -1;
    const int64_t reg = registers_[size_t(old)];
    if (!isNarrowFloat(types_[size_t(old)]))
      return reg;
    const auto [it, fresh] = wide_.try_emplace(reg, 0);
    if (fresh)
      it->second = emit(ElementwiseOp::Cast, DType::F32, reg);
    return it->second;
  }

  /// The register of its result in the new program.
  int64_t rewrite(const ElementwiseInstruction &instruction) {
    const auto [op, type, sources, constant] = instruction;
    const auto same = [&](size_t s) { return sources[s] < 0 ? -1 : registers_[size_t(sources[s])]; };
    if (op == ElementwiseOp::Constant) {
      constants_.push_back(constant);
      return emit(op, type, int64_t(constants_.size()) - 1);
    }
    if (op == ElementwiseOp::Copy || op == ElementwiseOp::Select)
      return emit(op, type, same(0), same(1), same(2));
    if (op == ElementwiseOp::Cast)
      return cast(wide(sources[0]), wideType(sources[0]), type);
    const int64_t a = wide(sources[0]), b = wide(sources[1]);
    const int64_t result = emit(op, isNarrowFloat(type) ? DType::F32 : type, a, b);
    return isNarrowFloat(type) ? emit(ElementwiseOp::Cast, type, result) : result;
  }

  DType wideType(int old) const { return isNarrowFloat(types_[size_t(old)]) ? DType::F32 : types_[size_t(old)]; }

  int64_t cast(int64_t reg, DType from, DType to) {
    if (from == to)
      return reg;
    if (isNarrowFloat(to) && from != DType::F32)
      reg = emit(ElementwiseOp::Cast, DType::F32, reg);
    return emit(ElementwiseOp::Cast, to, reg);
  }

  const ElementwiseCall &call_;
  std::vector<int64_t> code_, registers_; ///< new registers by old
  std::vector<double> constants_;
  std::vector<DType> types_;        ///< by old register
  std::map<int64_t, int64_t> wide_; ///< float32 by register of 16 bits
};

} // namespace

Invocation widenProgram(const Invocation &invocation, const ElementwiseCall &call) {
  return Widener(call).run(invocation);
}

} // namespace ds::kernels
