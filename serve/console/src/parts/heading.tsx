// The heading of a page takes the focus when one comes to the page.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function Heading({ title, children }: { title: string; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Grainstore`;
    heading.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [title]);
  return (
    <div class="heading">
      <h1 ref={heading} tabIndex={-1}>{title}</h1>
      {children}
    </div>
  );
}
