// Small charts in SVG. Each has its figures in words beside it, for those who do not see it.
interface Line {
  name: string;
  values: (number | null)[];
  tone: "one" | "two" | "bad";
}

interface ChartProps {
  label: string;
  lines: Line[];
  unit: (value: number) => string;
  from: string;
  to: string;
}

const WIDTH = 480;
const HEIGHT = 96;

function path(values: (number | null)[], most: number): string {
  const step = WIDTH / Math.max(1, values.length - 1);
  let pen = "M";
  let out = "";
  values.forEach((value, index) => {
    if (value === null) {
      pen = "M";
      return;
    }
    out += `${pen}${(index * step).toFixed(1)} ${(HEIGHT - 2 - (value / most) * (HEIGHT - 8)).toFixed(1)}`;
    // A point with nothing before and behind it is a dot.
    if (pen === "M" && (values[index + 1] ?? null) === null) out += "h.01";
    pen = "L";
  });
  return out;
}

export function Chart({ label, lines, unit, from, to }: ChartProps) {
  const numbers = lines.flatMap((line) => line.values).filter((value) => value !== null);
  const highest = Math.max(0, ...numbers);
  const most = highest || 1;
  return (
    <figure class="chart">
      <figcaption>
        <strong>{label}</strong>
        {lines.map((line) => {
          const now = line.values.findLast((value) => value !== null) ?? 0;
          return <span class={`legend ${line.tone}`}>{line.name} {unit(now)}</span>;
        })}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img"
        aria-label={`${label}, from ${from} to ${to}: at most ${unit(highest)}`}>
        <path class="grid" d={`M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 1}H${WIDTH}`} />
        {lines.map((line) => <path class={`line ${line.tone}`} d={path(line.values, most)} />)}
      </svg>
      <p class="chart-foot dim"><span>{from}</span><span>at most {unit(highest)}</span><span>{to}</span></p>
    </figure>
  );
}

/** A share from 0 to 1 as a bar, with its number. */
export function Bar({ value, tone = "one", text }: { value: number; tone?: string; text?: string }) {
  const share = Math.max(0, Math.min(1, value));
  return (
    <span class="bar">
      <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect class="bar-room" width="100" height="8" rx="1" />
        <rect class={`bar-fill ${tone}`} width={share * 100} height="8" rx="1" />
      </svg>
      <span class="num">{text ?? value.toFixed(3)}</span>
    </span>
  );
}
