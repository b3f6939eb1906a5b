// EXAMPLE
  return
}
