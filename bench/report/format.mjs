// Figures as people read them.

export function ms(value) {
  return value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2);
}

export function times(value) {
  return `${value >= 20 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2)}×`;
}

export function count(value) {
  return Math.round(value).toLocaleString('en');
}

export function megabytes(bytes) {
  return count(bytes / 1e6);
}
