// Figures as people read them: the same digits as reports and pictures have.

export const digits = (value) => {
  if (value >= 1000) return Math.round(value).toLocaleString("en");
  if (Number.isInteger(value)) return String(value);
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
};

export const ms = (value) => {
  if (value >= 10000) return `${digits(value / 1000)} s`;
  return value > 0 && value < 0.1 ? `${digits(value * 1000)} µs` : `${digits(value)} ms`;
};

export const bytes = (value) => {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let place = 0;
  while (Math.abs(value) >= 999.5 && place < units.length - 1) [value, place] = [value / 1000, place + 1];
  return `${digits(value)} ${units[place]}`;
};

// A value in the unit that `compare` and `estimate` name.
export const inUnit = (value, unit) => {
  if (value === null || value === undefined) return "–";
  if (unit === "ms") return ms(value);
  if (unit === "bytes") return bytes(value);
  return unit === "tokens/s" || unit === "GPUs" || unit === "requests" ? digits(value) : `${digits(value)} ${unit}`;
};

// "4.27–5.81 ms": the unit once, where both ends have the same.
export const range = (ends, write) => {
  if (!ends) return null;
  const [low, high] = ends.map(write);
  const unit = / \S+$/.exec(high)?.[0] ?? "";
  return `${unit && low.endsWith(unit) ? low.slice(0, -unit.length) : low}–${high}`;
};
