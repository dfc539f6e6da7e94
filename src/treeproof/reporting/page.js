(function(){
var root=document.documentElement,button=document.querySelector('button');
if(button)button.addEventListener('click',function(){
var dark=root.dataset.look?root.dataset.look==='dark':matchMedia('(prefers-color-scheme:dark)').matches;
root.dataset.look=dark?'light':'dark'});
document.querySelectorAll('svg[data-curve]').forEach(function(svg){
var c=JSON.parse(svg.dataset.curve),g=svg.querySelector('.cursor'),line=g.querySelector('line'),
out=svg.parentNode.querySelector('.read'),start=out?out.textContent:'';
function pct(v){return (100*v).toFixed(1)+'%'}
svg.addEventListener('pointermove',function(e){
var box=svg.getBoundingClientRect(),x=(e.clientX-box.left)*__W__/box.width,
t=Math.min(1,Math.max(0,(x-__L__)/(__W__-__L__-__R__))),i=Math.round(t*(c.eps.length-1)),
px=__L__+(__W__-__L__-__R__)*c.eps[i]/c.eps[c.eps.length-1];
g.removeAttribute('hidden');line.setAttribute('x1',px);line.setAttribute('x2',px);
line.setAttribute('y1',__T__);line.setAttribute('y2',__B__);
if(out)out.textContent='eps '+Number(c.eps[i].toPrecision(3))+': '+(c.attack[i]===c.verified[i]?
'error exactly '+pct(c.verified[i]):'error between '+pct(c.attack[i])+' and '+pct(c.verified[i]))});
svg.addEventListener('pointerleave',function(){g.setAttribute('hidden','hidden');if(out)out.textContent=start});
})})();
