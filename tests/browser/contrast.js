// What is too faint to read: each element with text of its own whose contrast to what lies behind it is below the least.
const [least] = arguments;

function channels(colour) {
  const numbers = colour.match(/-?[\d.]+/g).map(Number);
  return colour.startsWith("color(srgb") ? numbers.map((n, at) => (at < 3 ? n * 255 : n)) : numbers;
}

function over([r, g, b, alpha = 1], below) {
  return [r, g, b].map((value, at) => value * alpha + below[at] * (1 - alpha));
}

function behind(element) {
  const layers = [];
  for (let at = element; at; at = at.parentElement) layers.push(channels(getComputedStyle(at).backgroundColor));
  const canvas = matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255];
  return layers.reverse().reduce((below, layer) => over(layer, below), canvas);
}

function opacity(element) {
  return element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1;
}

// In a drawing, the slice that the words stand on.
function slice(element) {
  const rect = element.closest(".d-part")?.querySelector("rect");
  return rect && channels(getComputedStyle(rect).fill);
}

function luminance(colour) {
  const [r, g, b] = colour.map((value) => (value / 255 <= 0.04045 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const faint = [];
let looked = 0;
for (const element of document.querySelectorAll("body, body *")) {
  const words = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const box = element.getBoundingClientRect();
  if ((!words.length && !element.placeholder) || !box.width || !box.height || element.closest("title, desc, [hidden]")) continue;
  const style = getComputedStyle(element);
  const colour = channels(element.closest("svg") ? style.fill : words.length ? style.color : getComputedStyle(element, "::placeholder").color);
  const below = slice(element) ?? behind(element);
  const [r, g, b, alpha = 1] = colour;
  const found = contrast(over([r, g, b, alpha * opacity(element)], below), below);
  looked += 1;
  if (found < least) faint.push(`${found.toFixed(2)} ${element.tagName} ${element.className.baseVal ?? element.className}: ${(words[0]?.data ?? element.placeholder).trim().slice(0, 40)}`);
}
return { looked, faint };
