// Included by elementwise_loops.h; not a header of its own: the loop of each opcode and type.

/// Opcodes that any number has; null for others.
template <typename T> TileLoop numberLoop(ElementwiseOp op) {
  switch (op) {
  case ElementwiseOp::Add:
    return binaryLoop<Add, T, T>;
  case ElementwiseOp::Sub:
    return binaryLoop<Sub, T, T>;
  case ElementwiseOp::Mul:
    return binaryLoop<Mul, T, T>;
  case ElementwiseOp::Div:
    return binaryLoop<Div, T, T>;
  case ElementwiseOp::Max:
    return binaryLoop<Max, T, T>;
  case ElementwiseOp::Min:
    return binaryLoop<Min, T, T>;
  case ElementwiseOp::Equal:
    return binaryLoop<Equal, uint8_t, T>;
  case ElementwiseOp::Less:
    return binaryLoop<Less, uint8_t, T>;
  case ElementwiseOp::LessEqual:
    return binaryLoop<LessEqual, uint8_t, T>;
  case ElementwiseOp::Greater:
    return binaryLoop<Greater, uint8_t, T>;
  case ElementwiseOp::GreaterEqual:
    return binaryLoop<GreaterEqual, uint8_t, T>;
  case ElementwiseOp::Select:
    return selectLoop<T>;
  case ElementwiseOp::Copy:
    return unaryLoop<Copy, T, T>;
  case ElementwiseOp::Neg:
    return unaryLoop<Neg, T, T>;
  case ElementwiseOp::Abs:
    return unaryLoop<Abs, T, T>;
  case ElementwiseOp::Relu:
    return unaryLoop<Relu, T, T>;
  case ElementwiseOp::Sign:
    return unaryLoop<Sign, T, T>;
  default:
    return nullptr;
  }
}

/// Opcodes of floats alone.
template <typename T> TileLoop floatLoop(ElementwiseOp op) {
  constexpr bool single = std::is_same_v<T, float>;
  switch (op) {
  case ElementwiseOp::IsNan:
    return unaryLoop<IsNan, uint8_t, T>;
  case ElementwiseOp::Sqrt:
    return unaryLoop<Sqrt, T, T>;
  case ElementwiseOp::Rsqrt:
    return unaryLoop<Rsqrt, T, T>;
  case ElementwiseOp::Reciprocal:
    return unaryLoop<Reciprocal, T, T>;
  case ElementwiseOp::Exp:
    return unaryLoop<Exp, T, T>;
  case ElementwiseOp::Log:
    return unaryLoop<Log, T, T>;
  case ElementwiseOp::Log1p:
    return unaryLoop<Log1p, T, T>;
  case ElementwiseOp::Expm1:
    return unaryLoop<Expm1, T, T>;
  case ElementwiseOp::GeluTanh:
    return unaryLoop<GeluTanh, T, T>;
  case ElementwiseOp::GeluTanhSlope:
    return unaryLoop<GeluTanhSlope, T, T>;
  case ElementwiseOp::Erf:
    return unaryLoop<Erf, T, T>;
  case ElementwiseOp::Tanh:
    return unaryLoop<Tanh, T, T>;
  case ElementwiseOp::Sigmoid:
    return unaryLoop<Sigmoid, T, T>;
  case ElementwiseOp::Sin:
    return single ? trigonometricLoop<0> : trigonometricLoop64<0>;
  case ElementwiseOp::Cos:
    return single ? trigonometricLoop<1> : trigonometricLoop64<1>;
  case ElementwiseOp::Pow:
    return single ? powerLoop : powerLoop64;
  case ElementwiseOp::Floor:
    return unaryLoop<Floor, T, T>;
  case ElementwiseOp::Ceil:
    return unaryLoop<Ceil, T, T>;
  case ElementwiseOp::Round:
    return unaryLoop<Round, T, T>;
  case ElementwiseOp::Atan:
    return unaryLoop<Atan, T, T>;
  default:
    return numberLoop<T>(op);
  }
}

inline TileLoop boolLoop(ElementwiseOp op) {
  switch (op) {
  case ElementwiseOp::And:
    return binaryLoop<And, uint8_t, uint8_t>;
  case ElementwiseOp::Or:
    return binaryLoop<Or, uint8_t, uint8_t>;
  case ElementwiseOp::Xor:
    return binaryLoop<Xor, uint8_t, uint8_t>;
  case ElementwiseOp::Not:
    return unaryLoop<Not, uint8_t, uint8_t>;
  default:
    return numberLoop<uint8_t>(op);
  }
}

template <typename A> TileLoop castLoopFrom(DType to) {
  switch (to) {
  case DType::Bool:
    return castToBoolLoop<A>;
  case DType::U8:
    return castLoop<uint8_t, A>;
  case DType::U16:
    return castLoop<uint16_t, A>;
  case DType::U32:
    return castLoop<uint32_t, A>;
  case DType::I32:
    return castLoop<int32_t, A>;
  case DType::I64:
    return castLoop<int64_t, A>;
  case DType::F32:
    return castLoop<float, A>;
  case DType::BF16:
    return castLoop<BFloat16, A>;
  case DType::F16:
    return castLoop<Float16, A>;
  case DType::F64:
    break;
  }
  return castLoop<double, A>;
}

inline TileLoop castLoopOf(DType from, DType to) {
  switch (from) {
  case DType::Bool:
  case DType::U8:
    return castLoopFrom<uint8_t>(to);
  case DType::U16:
    return castLoopFrom<uint16_t>(to);
  case DType::U32:
    return castLoopFrom<uint32_t>(to);
  case DType::I32:
    return castLoopFrom<int32_t>(to);
  case DType::I64:
    return castLoopFrom<int64_t>(to);
  case DType::F32:
    return castLoopFrom<float>(to);
  case DType::BF16: // widenProgram casts floats of 16 bits to nothing else
    return castLoop<float, BFloat16>;
  case DType::F16:
    return castLoop<float, Float16>;
  case DType::F64:
    break;
  }
  return castLoopFrom<double>(to);
}

/// The loop of a checked instruction whose first operand has type `from`; for Select, `from` is the result's type.
inline TileLoop loopOf(ElementwiseOp op, DType from, DType to) {
  if (op == ElementwiseOp::Cast)
    return castLoopOf(from, to);
  switch (from) {
  case DType::Bool:
    return boolLoop(op);
  case DType::U8:
    return numberLoop<uint8_t>(op);
  case DType::U16:
    return numberLoop<uint16_t>(op);
  case DType::U32:
    return numberLoop<uint32_t>(op);
  case DType::I32:
    return numberLoop<int32_t>(op);
  case DType::I64:
    return numberLoop<int64_t>(op);
  case DType::F32:
    return floatLoop<float>(op);
  case DType::BF16: // copied and selected alone
  case DType::F16:
    return numberLoop<uint16_t>(op);
  case DType::F64:
    break;
  }
  return floatLoop<double>(op);
}

template <typename T> TileLoop constantPower(double exponent) {
  if (exponent == 2)
    return unaryLoop<Square, T, T>;
  if (exponent == 3)
    return unaryLoop<Cube, T, T>;
  if (exponent == 1)
    return unaryLoop<Copy, T, T>;
  if (exponent == 0.5)
    return unaryLoop<Sqrt, T, T>;
  if (exponent == -0.5)
    return unaryLoop<Rsqrt, T, T>;
  if (exponent == -1)
    return unaryLoop<Reciprocal, T, T>;
  if (exponent == -2)
    return unaryLoop<ReciprocalSquare, T, T>;
  return nullptr;
}

/// A faster loop for pow with a constant exponent, or null.
inline TileLoop constantPowerLoop(DType type, double exponent) {
  return type == DType::F32 ? constantPower<float>(exponent) : constantPower<double>(exponent);
}
